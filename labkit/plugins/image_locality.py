"""ImageLocality (spec 10 §10.6)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import Plugin
from labkit.objects.pod import Pod
from labkit.plugins._normalize import truncating_div

_MIB = 1024 * 1024
_MIN_THRESHOLD = 23 * _MIB
_MAX_CONTAINER_THRESHOLD = 1000 * _MIB


class ImageLocality(Plugin):
    """Prefers nodes that have the pod's images, each weighted by how widely it has spread."""

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """0..100 from the bytes of the pod's images that are on the node."""
        names, containers = _images(pod)
        states = node.image_states
        total = self.handle.total_nodes() if self.handle is not None else 1
        found = 0
        for name in names:
            if name in states:
                size, nodes = states[name]
                found += int(float(size) * (float(nodes) / float(total)))
        return image_score(found, containers)

    def sign_pod(self, pod: Pod) -> Hashable:
        """Images, and how many containers there are."""
        return _images(pod)


def image_score(found: int, containers: int) -> int:
    """The score for `found` scaled bytes and a pod of `containers` containers (init containers count)."""
    top = _MAX_CONTAINER_THRESHOLD * containers
    # The lower bound is looked at first: without containers the upper one lies below it.
    clamped = _MIN_THRESHOLD if found < _MIN_THRESHOLD else min(found, top)
    return truncating_div(100 * (clamped - _MIN_THRESHOLD), top - _MIN_THRESHOLD)


def normalized_image_name(name: str) -> str:
    """The name with `:latest` when it carries no tag; nothing else is added."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def _images(pod: Pod) -> tuple[tuple[str, ...], int]:
    found: tuple[tuple[str, ...], int] | None = pod.__dict__.get("_image_names")
    if found is None:
        found = (tuple(_image_names(pod)), len(pod.spec.init_containers) + len(pod.spec.containers))
        pod.__dict__["_image_names"] = found
    return found


def _image_names(pod: Pod) -> Iterator[str]:
    for c in pod.spec.init_containers:
        yield normalized_image_name(c.image)
    for c in pod.spec.containers:
        yield normalized_image_name(c.image)
    for v in pod.spec.volumes:
        if v.image is not None:
            yield normalized_image_name(str(v.image.get("reference") or ""))
