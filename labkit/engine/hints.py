"""Who wants to hear of which cluster event, and whether it helps a rejected pod (spec 02 §9.1, §9.3)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from enum import Enum
from typing import Any

from labkit.engine.calls import RAISED
from labkit.engine.framework import Framework
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.node_info import QueuedPodInfo
from labkit.framework.plugin import plugin_name

EVERYTHING = ClusterEvent("*", ActionType.ALL)
UNSCHEDULABLE_TIMEOUT = ClusterEvent("*", ActionType.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent("*", ActionType.ALL, "ForceActivate")
#: (plugin name, what it registered)
Registration = tuple[str, ClusterEventWithHint]
_CAN_REJECT = ("pre_enqueue", "pre_filter", "filter", "reserve", "permit")


class Strategy(Enum):
    """What to do with a pod after an event."""

    SKIP = "Skip"
    AFTER_BACKOFF = "AfterBackoff"
    IMMEDIATELY = "Immediately"


class HintMap:
    """Registrations of all profiles' plugins."""

    def __init__(self, frameworks: Mapping[str, Framework], metrics: Any = None) -> None:
        self._frameworks = frameworks
        self._metrics = metrics
        self._by_profile: dict[str, list[Registration]] = {}
        #: (profile, event) -> registrations that match; events are few, and come often.
        self._matching: dict[tuple[str, ClusterEvent], list[Registration]] = {}
        self.rebuild()

    def rebuild(self) -> None:
        """Read the registrations anew, after plugins were swapped."""
        self._by_profile = {name: list(_registrations(f)) for name, f in self._frameworks.items()}
        self._matching.clear()

    def _matches(self, profile: str, event: ClusterEvent) -> list[Registration]:
        found = self._matching.get((profile, event))
        if found is None:
            entries = self._by_profile.get(profile, ())
            found = self._matching[profile, event] = [e for e in entries if e[1].event.matches(event)]
        return found

    def anyone_interested(self, event: ClusterEvent) -> bool:
        """Some plugin of some profile registered for `event`."""
        return event.is_wildcard or any(self._matches(profile, event) for profile in self._by_profile)

    def events_of(self, profile: str, plugin: str) -> list[ClusterEvent]:
        """Events that one plugin registered."""
        return [r.event for name, r in self._by_profile.get(profile, ()) if name == plugin]

    def worth(self, info: QueuedPodInfo, event: ClusterEvent, old: Any, new: Any) -> Strategy:
        """Is it worth trying `info` again after `event`? Only plugins that rejected it are asked."""
        rejectors = info.unschedulable_plugins | info.pending_plugins
        if not rejectors:
            return Strategy.AFTER_BACKOFF
        if event.is_wildcard:
            other = new is not None and getattr(new, "uid", info.pod.uid) != info.pod.uid
            return Strategy.SKIP if other else Strategy.AFTER_BACKOFF
        found = Strategy.SKIP
        for plugin, registration in self._matches(info.pod.spec.scheduler_name, event):
            if plugin not in rejectors:
                continue
            if self._answer(plugin, registration, event, info, old, new) == QueueingHint.SKIP:
                continue
            if plugin in info.pending_plugins:
                return Strategy.IMMEDIATELY
            found = Strategy.AFTER_BACKOFF
            if not info.pending_plugins:
                return found
        return found

    def _answer(
        self,
        plugin: str,
        registration: ClusterEventWithHint,
        event: ClusterEvent,
        info: QueuedPodInfo,
        old: Any,
        new: Any,
    ) -> QueueingHint:
        if registration.hint is None:
            return QueueingHint.QUEUE
        start = time.perf_counter()
        try:
            answer = registration.hint(info.pod, old, new)
            label = answer.value
        except RAISED:
            # Better one attempt in vain than a pod that is forgotten; so for answers that are no hint.
            answer, label = QueueingHint.QUEUE, "Error"
        if self._metrics is not None:
            self._metrics.hint(plugin, event.label, label, time.perf_counter() - start)
        return answer


def _registrations(framework: Framework) -> list[Registration]:
    found: list[Registration] = []
    seen: set[str] = set()
    for point in _CAN_REJECT:
        for plugin in framework.plugins(point):
            name = plugin_name(plugin)
            if name in seen:
                continue
            seen.add(name)
            found += [(name, r) for r in _of_plugin(plugin)]
    if framework.extenders:
        found.append(("Extender", ClusterEventWithHint(EVERYTHING)))
    return found


def _of_plugin(plugin: Any) -> list[ClusterEventWithHint]:
    register = getattr(plugin, "events_to_register", None)
    if register is None:
        return [ClusterEventWithHint(EVERYTHING)]
    try:
        entries = list(register())
    except RAISED:
        return [ClusterEventWithHint(EVERYTHING)]
    if not all(isinstance(e, ClusterEventWithHint) for e in entries):
        return [ClusterEventWithHint(EVERYTHING)]
    actions = [e.event.action for e in entries if e.event.resource == "Node"]
    added = any(a & ActionType.ADD for a in actions)
    if added and not any(a & ActionType.UPDATE_NODE_TAINT for a in actions):
        # A node is often added with a taint that goes away later: whoever waits for nodes must hear of that.
        entries.append(ClusterEventWithHint(ClusterEvent("Node", ActionType.UPDATE_NODE_TAINT)))
    return entries
