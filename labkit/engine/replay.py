"""Runs a recorded scenario pod by pod, as the real scheduler was run (`tests/golden/FORMAT.md`)."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import msgspec

from labkit.config import ConfigError, FeatureGates, check_config, load_config
from labkit.engine.build import build_frameworks
from labkit.engine.cache import Cache
from labkit.engine.cycle import CycleResult, Settings, schedule_pod
from labkit.engine.framework import Framework
from labkit.engine.nominator import Nominator
from labkit.engine.notes import event_note
from labkit.engine.replay_volumes import bind_claims
from labkit.engine.services import Services
from labkit.engine.trace import Trace
from labkit.framework.clock import VirtualClock
from labkit.framework.cycle_state import CycleState
from labkit.framework.plugin import plugin_name
from labkit.objects.codec import drop_nulls, from_dict
from labkit.objects.meta import KubeObject, RawObject
from labkit.objects.pod import Pod

_LATER = 1893456000.0 + 10**6


class ReplayObjects:
    """Typed objects by kind, in order of addition."""

    def __init__(self) -> None:
        self.by_kind: dict[str, dict[tuple[str, str], KubeObject]] = {}

    def add(self, obj: KubeObject, kind: str) -> None:
        """Add or replace."""
        self.by_kind.setdefault(kind, {})[(obj.namespace, obj.name)] = obj

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        """The object, or None."""
        return self.by_kind.get(kind, {}).get((namespace, name))

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        """All of a kind."""
        return [
            o for (ns, _), o in self.by_kind.get(kind, {}).items() if namespace is None or ns == namespace
        ]


class Replay:
    """One scenario's cluster and scheduler. `run()` gives a trace per pending pod. ConfigError when refused."""

    def __init__(self, scenario: RawObject, *, plugins: Iterable[Any] = ()) -> None:
        config = scenario.get("config")
        gates = FeatureGates()
        if config is not None:
            check_config(config, gates)
        self.config = load_config(config, gates=gates)
        self.objects = ReplayObjects()
        self.cache = Cache()
        self.nominator = Nominator()
        self.services = Services(clock=VirtualClock(_LATER), objects=self.objects, nominator=self.nominator)
        self.frameworks = build_frameworks(self.config, self.services, gates, plugins)
        self.settings = Settings(all_nodes=True)
        # The recorded scheduler learnt of nodes in name order, which decides which size of an image counts.
        for raw in sorted(scenario.get("objects") or (), key=_nodes_by_name):
            self._add(drop_nulls(copy.deepcopy(raw)))
        self.pods: list[Pod] = []
        for raw in scenario.get("pods") or ():
            pod = from_dict(raw, "Pod")
            assert isinstance(pod, Pod)
            self.pods.append(pod)
            if pod.status.nominated_node_name:
                self.nominator.add(pod, pod.status.nominated_node_name)

    def _add(self, raw: RawObject) -> None:
        obj = from_dict(raw)
        kind = str(raw.get("kind"))
        if kind == "Node":
            self.cache.add_node(obj)  # type: ignore[arg-type]
        elif kind == "Pod":
            self.cache.add_pod(obj)  # type: ignore[arg-type]
        else:
            self.objects.add(obj, kind)

    def run(self) -> list[Trace]:
        """Try every pod once, in order."""
        return [self._try(i, pod) for i, pod in enumerate(self.pods)]

    def _try(self, index: int, pod: Pod) -> Trace:
        trace = Trace(pod.key)
        framework = self.frameworks.get(pod.spec.scheduler_name)
        if framework is None:
            trace.skipped = {"reason": "NoProfile"}
            return trace
        for plugin in framework.plugins("pre_enqueue"):
            status = plugin.pre_enqueue(pod)
            if status is not None and not status.is_success:
                trace.skipped = {
                    "reason": "PreEnqueue",
                    "plugin": plugin_name(plugin),
                    "code": status.code.label,
                    "reasons": sorted(status.reasons),
                }
                return trace
        self.cache.update_snapshot(self.services.snapshot)
        state = CycleState()
        pinned = bool(pod.spec.node_name)
        result = schedule_pod(framework, state, pod, self.settings, trace, run_post_filter=not pinned)
        if result.node is not None:
            # The recorded run goes on with the first of the best nodes.
            node = trace.node = trace.best[0]
            self._place(index, pod, node, framework, state, trace)
        else:
            self._failed(pod, result, framework, trace, pinned)
        if trace.full_message is not None:
            trace.full_message = event_note(trace.full_message)
        return trace

    def _place(
        self, index: int, pod: Pod, node: str, framework: Framework, state: CycleState, trace: Trace
    ) -> None:
        self.nominator.delete(pod)
        placed = _changed(
            pod, node_name=node, start_time=f"2030-01-01T00:{index // 60:02d}:{index % 60:02d}Z"
        )
        trace.volumes = bind_claims(self.objects, framework, state, pod, node)
        self.cache.add_pod(placed)

    def _failed(
        self, pod: Pod, result: CycleResult, framework: Framework, trace: Trace, pinned: bool
    ) -> None:
        if pinned:
            self.nominator.delete(pod)
            return
        found = result.post_filter
        if (
            found is not None
            and found.nominated_node_name
            and trace.post_filter_status is not None
            and (trace.post_filter_status.is_success)
        ):
            node = found.nominated_node_name
            victims = set(found.victims)
            for info in list(self.cache.nodes[node].pods):
                if info.pod.key in victims:
                    self.cache.remove_pod(info.pod)
            for other in self.nominator.pods_for(node):
                # Only where the nominator's copy carries the nomination: a pod nominated during this run does
                # not, and keeps its place.
                if other.priority < pod.priority and other.status.nominated_node_name:
                    self._set_nomination(other, "")
            self._set_nomination(pod, node)
        elif result.nominated is not None:
            self._set_nomination(pod, result.nominated)

    def _set_nomination(self, pod: Pod, node: str) -> None:
        changed = msgspec.structs.replace(
            pod, status=msgspec.structs.replace(pod.status, nominated_node_name=node)
        )
        self.pods[:] = [changed if p.uid == pod.uid else p for p in self.pods]
        self.nominator.delete(pod)
        if node:
            self.nominator.add(pod, node)


def _nodes_by_name(raw: RawObject) -> tuple[bool, bytes]:
    is_node = raw.get("kind") == "Node"
    return not is_node, str((raw.get("metadata") or {}).get("name")).encode() if is_node else b""


def _changed(pod: Pod, *, node_name: str, start_time: str) -> Pod:
    return msgspec.structs.replace(
        pod,
        spec=msgspec.structs.replace(pod.spec, node_name=node_name),
        status=msgspec.structs.replace(pod.status, start_time=start_time, nominated_node_name=""),
    )


def replay(scenario: RawObject) -> dict[str, Any]:
    """The scenario's outcome in golden form: `expect`, or `configError` and `configErrorStage`."""
    try:
        traces = Replay(scenario).run()
    except ConfigError as e:
        return {"configError": e.message, "configErrorStage": e.stage}
    return {"expect": [t.to_dict() for t in traces]}
