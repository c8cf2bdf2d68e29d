"""What was computed from a pod, handed on to its next version when nothing that it depends on has changed."""

from __future__ import annotations

import msgspec

from labkit.objects.pod import Pod

_INFO, _RAW = "_pod_info", "raw"


def hand_on(old: Pod, new: Pod) -> None:
    """Plugins' facts about `old` are those about `new` when labels, spec but for the node, and sizes are the same."""
    if old.metadata.labels == new.metadata.labels and not _resized(old) and not _resized(new):
        before, after = old.spec, new.spec
        if before.node_name != after.node_name:
            before = msgspec.structs.replace(before, node_name=after.node_name)
        if before == after:
            copy_facts(old, new)


def copy_facts(old: Pod, new: Pod) -> None:
    """Hand all facts on."""
    facts = old.__dict__
    info = facts.get(_INFO)
    raw = new.__dict__.get(_RAW)
    new.__dict__.update(facts)
    if info is not None:
        new.__dict__[_INFO] = info.for_pod(new)
    if raw is not None:
        new.__dict__[_RAW] = raw
    else:
        new.__dict__.pop(_RAW, None)


def _resized(pod: Pod) -> bool:
    """The status may say something about the pod's size."""
    s = pod.status
    return (
        bool(s.container_statuses or s.init_container_statuses or s.allocated_resources)
        or s.resources is not None
    )
