"""Where would these pods go? The real engine on a copy of a cluster, until nothing moves any more.

Pods are tried in the order of the queue. A pod that is placed stays; victims of preemption are deleted at once and
the pod that they make room for is tried again, as are all pending pods whenever something changed. Volumes that
wait for their first consumer are bound with the pod.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from labkit.config import FeatureGates, SchedulerConfig, default_config
from labkit.engine.build import build_frameworks
from labkit.engine.cache import Cache
from labkit.engine.cycle import CycleResult, Settings, schedule_pod
from labkit.engine.manifests import Manifests
from labkit.engine.nominator import Nominator
from labkit.engine.notes import event_note
from labkit.engine.replay import ReplayObjects
from labkit.engine.replay_volumes import bind_claims
from labkit.engine.services import Services
from labkit.engine.trace import Trace
from labkit.framework.clock import VirtualClock
from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import QueuedPodInfo
from labkit.framework.plugin import plugin_name
from labkit.i18n import t
from labkit.objects.pod import Pod
from labkit.progress import Step, progress

#: So many node verdicts of single plugins are recorded at most; larger runs record the framework's verdicts only.
_DETAILED = 20_000


@dataclass
class PodOutcome:
    """What became of one pending pod. `result`: scheduled, unschedulable, error, gated, foreign (no profile),
    deleting or preempted; `traces` has one record per attempt."""

    pod: str
    result: str = "unschedulable"
    node: str | None = None
    traces: list[Trace] = field(default_factory=list)
    preempted_by: str | None = None

    @property
    def trace(self) -> Trace | None:
        """The last attempt that says something."""
        return self.traces[-1] if self.traces else None


@dataclass
class Preemption:
    """A pod that was deleted to make room."""

    victim: str
    preemptor: str
    node: str


@dataclass
class Outcome:
    """The end of a simulation: outcomes in the order in which the pods were first tried."""

    pods: list[PodOutcome] = field(default_factory=list)
    preemptions: list[Preemption] = field(default_factory=list)


class Simulation:
    """A copy of a cluster with a scheduler. `seed` None takes the first of equal nodes, as the search order has
    them; a number picks among equals at random, as the timing of a real cluster does."""

    def __init__(
        self,
        manifests: Manifests,
        config: SchedulerConfig | None = None,
        *,
        gates: FeatureGates | None = None,
        seed: int | None = None,
        plugins: Iterable[Any] = (),
        extenders: Iterable[Any] = (),
    ) -> None:
        config = config or default_config(gates)
        self._random = random.Random(seed) if seed is not None else None
        self._settings = Settings(
            percentage_of_nodes_to_score=config.percentage_of_nodes_to_score, rng=random.Random(seed or 0)
        )
        self._cache, self._objects, self._nominator = Cache(), ReplayObjects(), Nominator()
        self._services = Services(
            clock=VirtualClock(),
            objects=self._objects,
            nominator=self._nominator,
            extenders=list(extenders),
        )
        self.frameworks = build_frameworks(config, self._services, gates, plugins)
        for kind, obj in manifests.objects:
            self._objects.add(obj, kind)
        for node in manifests.nodes:
            self._cache.add_node(node)
        for pod in manifests.placed:
            self._cache.add_pod(pod)
        self._detailed = len(manifests.nodes) * len(manifests.pending) <= _DETAILED
        self._outcomes: dict[str, PodOutcome] = {}
        self._waiting = {p.uid: p for p in self._in_queue_order(manifests.pending)}
        self._started = 0
        self.outcome = Outcome()
        for pod in self._waiting.values():
            found = self._outcomes[pod.uid] = PodOutcome(pod.key)
            self.outcome.pods.append(found)
            if pod.status.nominated_node_name:
                self._nominator.add(pod, pod.status.nominated_node_name)

    def run(self) -> Outcome:
        """Try all pods, again while something changes."""
        with progress(len(self._waiting), t("scheduling", "调度中")) as step:
            while self._round(step):
                pass
        return self.outcome

    def _in_queue_order(self, pods: list[Pod]) -> list[Pod]:
        if not self.frameworks or not pods:
            return pods
        less = next(iter(self.frameworks.values())).plugins("queue_sort")[0].less
        # Stored pods entered the queue when they were created, new ones come after them in the order of the files.
        arrived = sorted(pods, key=lambda p: p.metadata.creation_timestamp or "~")
        infos = [QueuedPodInfo(p, float(i), i) for i, p in enumerate(arrived)]

        def compare(a: QueuedPodInfo, b: QueuedPodInfo) -> int:
            return -1 if less(a, b) else 1 if less(b, a) else a.sequence - b.sequence

        return [info.pod for info in sorted(infos, key=functools.cmp_to_key(compare))]

    def _round(self, step: Step) -> bool:
        """One pass over the pending pods; True when another pass may have another result."""
        changed = False
        for uid in list(self._waiting):
            if uid in self._waiting and self._attempt(self._waiting[uid]):
                changed = True
                step(1)
        return changed and bool(self._waiting)

    def _attempt(self, pod: Pod) -> bool:
        """True when the attempt changed the cluster."""
        found = self._outcomes[pod.uid]
        if pod.terminating:
            found.result = "deleting"
            del self._waiting[pod.uid]
            return False
        trace = Trace(
            pod.key,
            attempt=len(found.traces) + 1,
            time=self._services.clock.now(),
            all_filters=self._detailed,
        )
        framework = self.frameworks.get(pod.spec.scheduler_name)
        if framework is None:
            trace.skipped = {"reason": "NoProfile"}
            found.result, found.traces = "foreign", [trace]
            del self._waiting[pod.uid]
            return False
        trace.profile = framework.profile_name
        trace.follow(framework.extenders)
        for plugin in framework.plugins("pre_enqueue"):
            status = plugin.pre_enqueue(pod)
            if status is not None and not status.is_success:
                trace.skipped = {
                    "reason": "PreEnqueue",
                    "plugin": plugin_name(plugin),
                    "code": status.code.label,
                    "reasons": list(status.reasons),
                }
                found.result, found.traces = "gated", [trace]
                del self._waiting[pod.uid]
                return False
        self._cache.update_snapshot(self._services.snapshot)
        state = CycleState()
        result = schedule_pod(framework, state, pod, self._settings, trace)
        if trace.full_message is not None:
            trace.full_message = event_note(trace.full_message)
        if result.node is not None:
            if self._random is not None and len(trace.best) > 1:
                trace.node = self._random.choice(trace.best)
            assert trace.node is not None
            found.traces.append(trace)
            trace.volumes = bind_claims(self._objects, framework, state, pod, trace.node)
            self._place(pod, trace.node)
            return True
        return self._failed(pod, result, found, trace)

    def _place(self, pod: Pod, node: str) -> None:
        found = self._outcomes[pod.uid]
        found.result, found.node = "scheduled", node
        self._nominator.delete(pod)
        del self._waiting[pod.uid]
        self._cache.add_pod(
            replace(
                pod,
                spec=replace(pod.spec, node_name=node),
                status=replace(pod.status, nominated_node_name="", start_time=self._start_time()),
            )
        )

    def _start_time(self) -> str:
        """Pods start one second after the other, so that "older" has a meaning among them."""
        self._started += 1
        start = datetime.fromtimestamp(self._services.clock.now() + self._started, UTC)
        return start.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _failed(self, pod: Pod, result: CycleResult, found: PodOutcome, trace: Trace) -> bool:
        found.result = "unschedulable" if result.status is not None and result.status.is_rejected else "error"
        if found.trace is not None and found.trace.full_message == trace.full_message:
            found.traces[-1] = trace
        else:
            found.traces.append(trace)
        made = result.post_filter
        if made is None or not made.nominated_node_name:
            if result.nominated is not None:
                self._nominate(pod, result.nominated)
            return False
        node, victims = made.nominated_node_name, set(made.victims)
        gone = [info.pod for info in self._cache.nodes[node].pods if info.pod.key in victims]
        for victim in gone:
            self._cache.remove_pod(victim)
            self.outcome.preemptions.append(Preemption(victim.key, pod.key, node))
            if victim.uid in self._outcomes:
                lost = self._outcomes[victim.uid]
                lost.result, lost.node, lost.preempted_by = "preempted", None, pod.key
        for other in self._nominator.pods_for(node):
            if other.priority < pod.priority:
                self._nominate(other, "")
        self._nominate(pod, node)
        return bool(gone)

    def _nominate(self, pod: Pod, node: str) -> None:
        changed = replace(pod, status=replace(pod.status, nominated_node_name=node))
        if pod.uid in self._waiting:
            self._waiting[pod.uid] = changed
        self._nominator.delete(pod)
        if node:
            self._nominator.add(changed, node)
