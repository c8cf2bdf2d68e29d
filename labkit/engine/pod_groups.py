"""Scheduling a pod group as a whole (alpha, gate GenericWorkload; spec 15 §1.2, §1.3).

All waiting pods of the group are decided one after the other on a copy of the snapshot. Only when that comes out
well are they booked for real, in the same order; otherwise nothing is.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from labkit.engine.group_placements import GroupAttempt, Member, decide_group
from labkit.engine.recorder import timestamp
from labkit.engine.trace import Trace
from labkit.framework.node_info import QueuedPodInfo
from labkit.framework.results import Diagnosis, FitError, NodeToStatus
from labkit.framework.status import Status
from labkit.objects.cluster import PodGroup
from labkit.plugins.gang_scheduling import group_of, in_group

if TYPE_CHECKING:
    from labkit.engine.scheduler import Scheduler

_CONDITION = "PodGroupScheduled"


class PodGroups:
    """Attempts for groups, on behalf of a scheduler."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def attempt(self, popped: QueuedPodInfo) -> Trace | None:
        """Decide the popped pod and every other waiting pod of its group. The popped pod's trace."""
        s, first = self._scheduler, popped.pod
        namespace, name = first.namespace, group_of(first)
        group: PodGroup | None = s.informer.get("PodGroup", namespace, name)
        members = self._members(popped, namespace, name)
        names = list(dict.fromkeys(m.info.pod.spec.scheduler_name for m in members))
        if len(names) > 1:
            text = (
                "all pods in a single pod group should have the same .spec.schedulerName set, "
                f'got: "{names[1]}" and "{names[0]}"'
            )
            self._fail_all(members, Status.as_error_of(text))
            return members[0].trace
        if not members:
            return None
        s.cache.update_snapshot(s.services.snapshot)
        found = decide_group(members, group, s.services, s.settings)
        self._carry_out(found)
        if group is not None:
            self._write_condition(group, found)
        popped_trace = next((m.trace for m in found.members if m.info is popped), None)
        return popped_trace or found.members[0].trace

    def _members(self, popped: QueuedPodInfo, namespace: str, name: str) -> list[Member]:
        s = self._scheduler
        infos: list[QueuedPodInfo] = []
        # In order of creation, which decides where priority and time of the first attempt do not.
        for pod in list(s.handlers.pending.values()):
            if in_group(pod, namespace, name):
                taken = popped if pod.uid == popped.pod.uid else s.queue.take(pod.key)
                if taken is not None:
                    infos.append(taken)
        if popped not in infos:
            s.queue.done(popped.pod.uid)
        members: list[Member] = []
        for info in infos:
            framework = s.frameworks.get(info.pod.spec.scheduler_name)
            if framework is None or info.pod.terminating or s.cache.is_assumed(info.pod):
                s.queue.done(info.pod.uid)
            else:
                members.append(Member(info, framework, s.new_trace(info, framework)))
        members.sort(key=lambda m: (-m.info.pod.priority, _first_attempt(m.info)))
        return members

    # --- what follows from the decision ---------------------------------------------------------------------

    def _carry_out(self, found: GroupAttempt) -> None:
        s = self._scheduler
        for member in found.members:
            member.started = time.perf_counter()
            if s.trace_mode != "off":
                s.traces.append(member.trace)
            if found.status is None and member.fits and not member.preempts:
                # The next one's Permit must see this one on its node.
                s.cache.update_snapshot(s.services.snapshot)
                trace = member.trace if s.trace_mode != "off" else None
                s.binding.place(
                    member.framework, member.info, member.node or "", member.state, trace, member.started
                )
            else:
                self._report(member, found)

    def _report(self, member: Member, found: GroupAttempt) -> None:
        if member.status is not None:
            self._fail(member, member.status, member.fit, member.nominated)
            return
        assert found.status is not None
        if not found.status.is_rejected:
            text = f"failed to schedule other pod from a pod group: {found.status.message}"
            self._fail(member, Status.as_error_of(text), None, "")
            return
        texts = [found.status.message, *member.waits_for]
        fit = FitError(1, Diagnosis(NodeToStatus()))
        fit.diagnosis.unschedulable_plugins.add("GangScheduling")
        nominated = member.node if found.waits_for_preemption else ""
        self._fail(member, Status.unschedulable(", ".join(texts)), fit, nominated)

    def _fail(self, member: Member, status: Status, fit: FitError | None, nominated: str | None) -> None:
        self._scheduler.failures.handle(
            member.framework,
            member.info,
            status,
            fit,
            nominated,
            started=member.started,
            trace=member.trace if member.status is None or member.trace.node is not None else None,
        )

    def _fail_all(self, members: list[Member], status: Status) -> None:
        for member in members:
            self._scheduler.traces.append(member.trace)
            self._fail(member, status, None, "")

    def _write_condition(self, group: PodGroup, found: GroupAttempt) -> None:
        s = self._scheduler
        if found.status is None:
            wanted = ("True", "Scheduled", "")
        else:
            reason = "Unschedulable" if found.status.is_rejected else "SchedulerError"
            wanted = ("False", reason, found.status.message)
        raw: dict[str, Any] = group.__dict__.get("raw") or {}
        known = next(
            (c for c in (raw.get("status") or {}).get("conditions") or () if c.get("type") == _CONDITION),
            None,
        )
        before = tuple((known or {}).get(key) or "" for key in ("status", "reason", "message"))
        if before[0] == "True" or before == wanted:
            return
        condition = {
            "type": _CONDITION,
            "status": wanted[0],
            "reason": wanted[1],
            "message": wanted[2],
            "lastTransitionTime": timestamp(s.clock.now())[:19] + "Z",
        }
        if known is not None and known.get("status") == wanted[0]:
            condition["lastTransitionTime"] = known["lastTransitionTime"]
        patch = {"status": {"conditions": [condition]}}
        try:
            s.client.patch_status("PodGroup", group.name, group.namespace, patch)
        except Exception as e:
            s.handlers.complain(f"PodGroup {group.key}: its condition was not written: {e}")


def _first_attempt(info: QueuedPodInfo) -> float:
    first = info.initial_attempt_timestamp
    return info.timestamp if first is None else first
