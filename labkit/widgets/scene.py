"""A lab's cluster, held still: decide one pod again and again under changed plugins, and nothing in the lab moves."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from labkit.config import load_config
from labkit.engine.build import build_frameworks
from labkit.engine.cache import Cache
from labkit.engine.cycle import Settings, schedule_pod
from labkit.engine.framework import Framework
from labkit.engine.informer import WATCHED, Informer, typed
from labkit.engine.nominator import Nominator
from labkit.engine.services import Services
from labkit.engine.trace import Trace
from labkit.errors import LabError
from labkit.framework.clock import VirtualClock
from labkit.framework.cycle_state import CycleState
from labkit.i18n import t
from labkit.objects.node import Node
from labkit.objects.pod import Pod
from labkit.what_if import gates_of, own_plugins

if TYPE_CHECKING:
    from labkit.lab import Lab

Json = dict[str, Any]


class Scene:
    """Nodes, placed pods and all other objects of `lab` as they are now.

    Pods that Permit holds have their room, and nominated ones count on their nodes, as in the lab itself.
    """

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.nodes = lab.look("Node")
        pods = lab.look("Pod")
        self.placed = [p for p in pods if (p.get("spec") or {}).get("nodeName")]
        self.waiting = [p for p in pods if not (p.get("spec") or {}).get("nodeName")]
        nominator = Nominator()
        for name in lab.scheduler.nominator.nodes():
            for nominated in lab.scheduler.nominator.pods_for(name):
                nominator.add(nominated, name)
        self._services = Services(clock=VirtualClock(lab.clock.now()), nominator=nominator)
        #: The pod that is being decided, taken off the node that it has in the lab.
        self._lifted: Pod | None = None
        self._objects = Informer()
        self._services.objects = self._objects
        self._cache = Cache()
        for raw in self.nodes:
            node = typed(raw, "Node")
            assert isinstance(node, Node)
            self._cache.add_node(node)
        for raw in self.placed:
            pod = typed(raw, "Pod")
            assert isinstance(pod, Pod)
            self._cache.add_pod(pod)
        for held in lab.scheduler.waiting.list():
            self._cache.add_pod(held.pod)
        for kind in WATCHED:
            for raw in lab.look(kind):
                self._objects.put(kind, typed(raw, kind))
        self._cache.update_snapshot(self._services.snapshot)

    def pod(self, pod: Any) -> Json:
        """The pod to decide: a manifest (YAML, dict), or the name of a pod of the lab. Without a node, defaults set.

        LabError when there is no such pod.
        """
        if isinstance(pod, str) and "\n" not in pod and ":" not in pod:
            key = pod if "/" in pod else f"default/{pod}"
            for raw in (*self.waiting, *self.placed):
                if key_of(raw) == key:
                    return without_node(raw)
            known = ", ".join(key_of(p) for p in self.waiting) or "–"
            raise LabError(f"there is no pod {key} in the lab", hint=f"waiting: {known}")
        from labkit.lab import read_objects

        raw = copy.deepcopy(read_objects(pod)[0].raw)
        raw.setdefault("apiVersion", "v1")
        raw.setdefault("metadata", {}).setdefault("namespace", "default")
        raw["metadata"].setdefault("name", "pod")
        raw["metadata"].pop("resourceVersion", None)
        try:
            made: Json = self.lab.client.create(raw, dry_run=True)
        except Exception as e:
            if not hasattr(e, "code"):
                raise
            # The lab has a pod of that name already: its defaults are the same.
            raw["metadata"]["name"] += "-again"
            made = self.lab.client.create(raw, dry_run=True)
        return without_node(made)

    def frameworks(self, config: Any = None) -> dict[str, Framework]:
        """Profiles on this scene, of `config` or as the lab runs them now."""
        loaded = load_config(self.lab.config if config is None else config)
        made = build_frameworks(loaded, self._services, gates_of(self.lab), own_plugins(self.lab))
        if config is None:
            for name, framework in self.lab.scheduler.frameworks.items():
                if name in made:
                    made[name].borrow(framework)
        return made

    def decide(
        self,
        pod: Json,
        *,
        config: Any = None,
        off: Mapping[str, Iterable[str] | None] | None = None,
        weights: Mapping[str, int] | None = None,
        change: Callable[[Framework], Any] | None = None,
        all_filters: bool = False,
    ) -> Trace:
        """One decision. `off`: plugin -> extension points without it (None: all); `change` may do anything else.

        A pod that has a node in the lab is decided as if it were not there.
        """
        frameworks = self.frameworks(config)
        incoming = typed(without_node(pod), "Pod")
        assert isinstance(incoming, Pod)
        self._lift(incoming)
        framework = frameworks.get(incoming.spec.scheduler_name) or next(iter(frameworks.values()))
        for name, points in (off or {}).items():
            framework.remove(name, points)
        running = framework.weights()
        for name, weight in (weights or {}).items():
            if name in running:
                framework.set_weight(name, weight)
        if change is not None:
            change(framework)
        trace = Trace(incoming.key, profile=framework.profile_name, all_filters=all_filters)
        schedule_pod(framework, CycleState(), incoming, Settings(all_nodes=True), trace)
        return trace

    def _lift(self, incoming: Pod) -> None:
        # It stays away until another pod is decided: who asked may still look at the snapshot.
        if self._lifted is not None and self._lifted.uid != incoming.uid:
            self._cache.add_pod(self._lifted)
            self._lifted = None
        there = self._cache.get_pod(incoming.uid)
        if there is not None:
            self._cache.remove_pod(there)
            self._lifted = there
        self._cache.update_snapshot(self._services.snapshot)


def key_of(pod: Json) -> str:
    """`namespace/name`."""
    return f"{pod['metadata'].get('namespace', 'default')}/{pod['metadata']['name']}"


def without_node(pod: Json) -> Json:
    """The pod as it was before it was placed."""
    spec = {k: v for k, v in (pod.get("spec") or {}).items() if k != "nodeName"}
    return {**pod, "spec": spec, "status": {"phase": "Pending"}}


def pod_options(scene: Scene, current: Json) -> list[tuple[str, str]]:
    """The waiting pods, and the one at hand, for a list to choose from."""
    keys = [key_of(current), *(key_of(p) for p in scene.waiting)]
    return [(k, k) for k in dict.fromkeys(keys)]


def clock_text(seconds: float) -> str:
    """Virtual time as `t + 00:12.0`, or with hours and days when there are some."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    if hours >= 48:
        days, hours = divmod(hours, 24)
        return t(f"t + {days} d {hours:02d}:{minutes:02d}", f"t + {days} 天 {hours:02d}:{minutes:02d}")
    if hours:
        return f"t + {hours}:{minutes:02d}:{rest:04.1f}"
    return f"t + {minutes:02d}:{rest:04.1f}"
