"""Running Reserve to PostBind: what happens once a node is chosen (spec 01 §4.7 to §4.13)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from labkit.engine.calls import RAISED, call_pair, call_status, failure, quote, raised, wrong_type
from labkit.engine.services import Services
from labkit.framework.cycle_state import CycleState
from labkit.framework.plugin import plugin_name
from labkit.framework.results import PreBindPreFlightResult
from labkit.framework.status import Code, Status, is_success
from labkit.objects.pod import Pod

#: Permit time-outs are cut to this many seconds.
MAX_PERMIT_TIMEOUT = 15 * 60.0


class BookingPoints:
    """The second half of a Framework: the extension points that act on one chosen node."""

    services: Services
    #: Plugins with weights at the extension points of pod groups (alpha): `placement_generate`, `placement_score`.
    placement: Mapping[str, list[tuple[Any, int]]] = {}

    @property
    def profile_names(self) -> tuple[str, ...]:
        """`schedulerName` of every profile of this scheduler."""
        return self.services.profiles

    def placement_plugins(self, point: str) -> list[tuple[Any, int]]:
        """(plugin, weight) at an extension point of pod groups."""
        return self.placement.get(point, [])

    def plugins(self, point: str) -> list[Any]:
        """Plugin objects of an extension point, in call order."""
        raise NotImplementedError

    # --- Reserve, Permit ----------------------------------------------------------------------------------

    def run_reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """The first plugin that does not succeed stops; the caller then runs `run_unreserve`."""
        for plugin in self.plugins("reserve"):
            status = call_status(plugin, "reserve", state, pod, node_name, node=node_name)
            if not is_success(status):
                return self._rejected_or_error(status, plugin, "running Reserve plugin")
        return None

    def run_unreserve(self, state: CycleState, pod: Pod, node_name: str) -> list[Status]:
        """All Reserve plugins in reverse order, whatever happened; what they raise is returned, not raised."""
        problems = []
        for plugin in reversed(self.plugins("reserve")):
            if not hasattr(plugin, "unreserve"):
                continue
            try:
                plugin.unreserve(state, pod, node_name)
            except RAISED as e:
                problems.append(raised(plugin, "unreserve", e, node_name))
        return problems

    def run_permit(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> tuple[Status | None, dict[str, float]]:
        """(status, plugin -> time-out in seconds). The status is Wait when somebody waits and nobody refuses."""
        waits: dict[str, float] = {}
        reasons: list[str] = []
        for plugin in self.plugins("permit"):
            timeout, status = call_pair(
                plugin,
                "permit",
                (int, float),
                state,
                pod,
                node_name,
                expected="None, a Status, or (Status, time-out in seconds)",
            )
            if is_success(status):
                continue
            assert status is not None
            if status.code == Code.WAIT:
                seconds = timeout if timeout is not None else 0.0
                if isinstance(seconds, bool) or math.isnan(seconds):
                    wrong = wrong_type(
                        plugin, "permit", timeout, "(Status.wait(), seconds to wait)", node_name
                    )
                    return self._rejected_or_error(wrong, plugin, "running Permit plugin"), {}
                waits[plugin_name(plugin)] = min(max(float(seconds), 0.0), MAX_PERMIT_TIMEOUT)
                reasons.extend(status.reasons)
                continue
            return self._rejected_or_error(status, plugin, "running Permit plugin"), {}
        return (Status(Code.WAIT, *reasons) if waits else None), waits

    # --- binding ------------------------------------------------------------------------------------------

    def run_pre_bind_pre_flights(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Success when some PreBind plugin will do work, Skip when none will."""
        some = False
        state.skip_pre_bind_plugins = skip = set[str]()
        state.parallel_pre_bind_plugins = parallel = set[str]()
        for plugin in self.plugins("pre_bind"):
            name = plugin_name(plugin)
            if not hasattr(plugin, "pre_bind_pre_flight"):
                some = True
                continue
            result, status = call_pair(
                plugin,
                "pre_bind_pre_flight",
                PreBindPreFlightResult,
                state,
                pod,
                node_name,
                expected="None, a Status, or (PreBindPreFlightResult, Status)",
            )
            if status is not None and status.code == Code.SKIP:
                skip.add(name)
            elif is_success(status):
                some = True
                if result is not None and result.allow_parallel:
                    parallel.add(name)
            elif status is not None and status.code == Code.ERROR:
                return failure(f"running PreBindPreFlight {quote(name)}: ", status)
            else:
                assert status is not None
                return Status.as_error_of(
                    f"PreBindPreFlight {name} returned {quote(status.code.label)}, which is unsupported. "
                    "It is supposed to return Success, Skip, or Error status"
                )
        return None if some else Status.skip()

    def run_pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """The first plugin that does not succeed stops."""
        for plugin in self.plugins("pre_bind"):
            if plugin_name(plugin) in state.skip_pre_bind_plugins:
                continue
            status = call_status(plugin, "pre_bind", state, pod, node_name, node=node_name)
            if not is_success(status):
                return self._rejected_or_error(status, plugin, "running PreBind plugin")
        return None

    def run_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """The first Bind plugin that does not Skip binds; Skip when all skip."""
        for plugin in self.plugins("bind"):
            status = call_status(plugin, "bind", state, pod, node_name, node=node_name)
            if status is not None and status.code == Code.SKIP:
                continue
            if is_success(status):
                return None
            return self._rejected_or_error(status, plugin, "running Bind plugin")
        return Status.skip()

    def run_post_bind(self, state: CycleState, pod: Pod, node_name: str) -> list[Status]:
        """All PostBind plugins; what they raise is returned, not raised."""
        problems = []
        for plugin in self.plugins("post_bind"):
            try:
                plugin.post_bind(state, pod, node_name)
            except RAISED as e:
                problems.append(raised(plugin, "post_bind", e, node_name))
        return problems

    def _rejected_or_error(self, status: Status | None, plugin: Any, prefix: str) -> Status:
        assert status is not None
        name = plugin_name(plugin)
        if status.is_rejected:
            return status.with_plugin(name)
        return failure(f"{prefix} {quote(name)}: ", status)
