"""Deciding a whole pod group on copies of the snapshot: one placement, or the best of several (spec 15 §1.2, §1.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from labkit.engine.binding import on_node, rejection
from labkit.engine.cycle import Settings, schedule_pod
from labkit.engine.framework import Framework
from labkit.engine.services import Services
from labkit.engine.trace import Trace
from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import NodeInfo, QueuedPodInfo, pod_info
from labkit.framework.results import FitError
from labkit.framework.snapshot import Snapshot
from labkit.framework.status import Status
from labkit.objects.cluster import PodGroup
from labkit.objects.pod import Pod
from labkit.plugins.gang_scheduling import in_group
from labkit.plugins.placement import Placement

UNSCHEDULABLE = "pod group is unschedulable"
WAITS_FOR_PREEMPTION = UNSCHEDULABLE + ", pod group is waiting for preemption to complete"
ASKED_TO_WAIT = "one or more plugins asked to wait and no plugin rejected pod"
NO_POD_PREEMPTION = "preemption: not eligible due to placement-based pod group scheduling limitation"


@dataclass
class Member:
    """One pod of the group and what was decided about it. `started`: perf_counter seconds.

    `status` says why it cannot go (None: it fits `node`); `waits_for` what Permit said when it asked to wait.
    """

    info: QueuedPodInfo
    framework: Framework
    trace: Trace
    state: CycleState = field(default_factory=CycleState)
    node: str | None = None
    status: Status | None = None
    fit: FitError | None = None
    nominated: str | None = ""
    preempts: bool = False
    waits_for: list[str] = field(default_factory=list)
    started: float = 0.0

    @property
    def fits(self) -> bool:
        """It has a node, if only the others have one too."""
        return self.node is not None and self.status is None

    def fresh(self) -> Member:
        """The same pod, undecided."""
        old = self.trace
        trace = Trace(
            old.pod, profile=old.profile, attempt=old.attempt, time=old.time, all_filters=old.all_filters
        )
        return Member(self.info, self.framework, trace)


@dataclass
class GroupAttempt:
    """The group's result: `status` None means that it can go."""

    members: list[Member]
    status: Status | None
    waits_for_preemption: bool = False
    placement: Placement | None = None


def decide_group(
    members: Sequence[Member], group: PodGroup | None, services: Services, settings: Settings
) -> GroupAttempt:
    """Try every placement; the snapshot is the same afterwards, and nothing is reserved."""
    framework = members[0].framework
    generators = framework.placement_plugins("placement_generate")
    if not generators or group is None:
        return _try(members, services.snapshot.nodes, services, settings, post_filter=True)
    nodes = services.snapshot.nodes
    scheduled = [
        i.pod for n in nodes for i in n.pods if in_group(i.pod, group.metadata.namespace, group.metadata.name)
    ]
    placements: list[Placement] = []
    for generator, _ in generators:
        made, problem = generator.placement_generate(group, scheduled, nodes)
        if problem is not None:
            return GroupAttempt(list(members), problem)
        placements += made
    if not placements:
        return GroupAttempt(list(members), Status.unschedulable("no feasible placements found"))
    limited = bool(group.topology_key)
    tried: list[GroupAttempt] = []
    for placement in placements:
        found = _try(
            [m.fresh() for m in members], placement.nodes, services, settings, post_filter=not limited
        )
        found.placement = placement
        placement.proposed = [m.info.pod for m in found.members if m.fits]
        tried.append(found)
    good = [t for t in tried if t.status is None]
    if len(good) > 1:
        return _best(good, framework, group, scheduled, settings)
    if good:
        return good[0]
    first = tried[0]
    if limited and first.status is not None:
        text = f"0/{len(tried)} placements are available, first placement status: {first.status.message}"
        first.status = Status.unschedulable(text)
    return first


def _best(
    good: list[GroupAttempt],
    framework: Framework,
    group: PodGroup,
    scheduled: Sequence[Pod],
    settings: Settings,
) -> GroupAttempt:
    totals = [0] * len(good)
    for plugin, weight in framework.placement_plugins("placement_score"):
        scores = [plugin.placement_score(group, scheduled, t.placement) for t in good]
        if hasattr(plugin, "normalize_placement_scores"):
            scores = plugin.normalize_placement_scores(scores)
        totals = [total + score * weight for total, score in zip(totals, scores, strict=True)]
    highest = [t for t, total in zip(good, totals, strict=True) if total == max(totals)]
    return highest[0] if len(highest) == 1 else settings.rng.choice(highest)


def _try(
    members: Sequence[Member],
    nodes: Sequence[NodeInfo],
    services: Services,
    settings: Settings,
    *,
    post_filter: bool,
) -> GroupAttempt:
    real, activate = services.snapshot, services.activate
    # What Permit asks for in a rehearsal must not happen: all pods of the group are here, and those that do not fit
    # would be tried again at once, for ever.
    services.activate = _ignore
    copies = [node.clone() for node in nodes]
    group: Status | None = Status.unschedulable(UNSCHEDULABLE)
    waits_for_preemption = preempting = False
    assumed: list[tuple[Member, Pod]] = []
    try:
        for member in members:
            services.snapshot = snapshot = Snapshot(copies)
            if not _decide(member, settings, post_filter=post_filter):
                if member.status is not None and not member.status.is_rejected:
                    group = member.status
                    break
                continue
            preempting |= member.preempts
            node = member.node or ""
            placed = on_node(member.info.pod, node)
            snapshot.by_name[node].add_pod(pod_info(placed))
            if not _book(member, placed, node):
                snapshot.by_name[node].remove_pod(placed)
                if member.status is not None and not member.status.is_rejected:
                    group = member.status
                    break
                continue
            assumed.append((member, placed))
            if member.waits_for or group is None:
                continue
            group = Status.unschedulable(WAITS_FOR_PREEMPTION) if preempting else None
            waits_for_preemption = preempting
    finally:
        for member, placed in reversed(assumed):
            member.framework.run_unreserve(member.state, placed, member.node or "")
        services.snapshot, services.activate = real, activate
    return GroupAttempt(list(members), group, waits_for_preemption and group is not None)


def _ignore(pods: Iterable[Pod]) -> None:
    """Nobody is activated."""


def _decide(member: Member, settings: Settings, *, post_filter: bool) -> bool:
    """True when the pod has a node, or would have it after a preemption."""
    result = schedule_pod(
        member.framework,
        member.state,
        member.info.pod,
        settings,
        member.trace,
        run_post_filter=post_filter,
    )
    if result.node is not None:
        member.node = result.node
        return True
    member.status, member.fit, member.nominated = result.status, result.fit_error, result.nominated
    if result.fit_error is not None and not post_filter and member.framework.has("post_filter"):
        result.fit_error.diagnosis.post_filter_message = NO_POD_PREEMPTION
        member.trace.message = member.trace.full_message = str(result.fit_error)
    made = result.post_filter
    if made is not None and made.override and made.nominated_node_name:
        member.node, member.preempts = made.nominated_node_name, True
        return True
    return False


def _book(member: Member, placed: Pod, node: str) -> bool:
    framework, state = member.framework, member.state
    refused = framework.run_reserve(state, placed, node)
    waits: dict[str, float] = {}
    if refused is None:
        refused, waits = framework.run_permit(state, placed, node)
    if waits:
        assert refused is not None
        member.waits_for = [*refused.reasons, ASKED_TO_WAIT]
        return True
    if refused is None:
        return True
    framework.run_unreserve(state, placed, node)
    member.status, member.node, member.nominated = refused, None, ""
    if refused.is_rejected:
        member.fit = rejection(refused, node)
        member.status = Status(refused.code, plugin=refused.plugin, error=member.fit)
    return False
