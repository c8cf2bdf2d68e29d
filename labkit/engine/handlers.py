"""What a change in the cluster does to cache and queue (spec 02 §8.3)."""

from __future__ import annotations

from collections.abc import Mapping

from labkit.engine.cache import Cache
from labkit.engine.derived import hand_on
from labkit.engine.event_diff import node_events, pod_events
from labkit.engine.framework import Framework
from labkit.engine.informer import WATCHED, Informer, kind_of, typed
from labkit.engine.queue import SchedulingQueue
from labkit.engine.waiting import WaitingPods
from labkit.framework.events import ActionType, ClusterEvent
from labkit.objects.meta import RawObject
from labkit.objects.node import Node
from labkit.objects.pod import Pod

_POD_ADDED = ClusterEvent("AssignedPod", ActionType.ADD)
_POD_WAITS = ClusterEvent("UnschedulablePod", ActionType.ADD)
_POD_DELETED = ClusterEvent("AssignedPod", ActionType.DELETE)
_NODE_ADDED = ClusterEvent("Node", ActionType.ADD)
_NODE_DELETED = ClusterEvent("Node", ActionType.DELETE)
_COMPLAINTS = 100
_TERMINAL = ("Succeeded", "Failed")


class Handlers:
    """Takes notifications in order. Objects that do not decode are reported in `problems` and passed over."""

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        informer: Informer,
        waiting: WaitingPods,
        frameworks: Mapping[str, Framework],
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._informer = informer
        self._waiting = waiting
        self._frameworks = frameworks
        #: Unassigned pods that are ours, by UID: the scheduler's view of pending pods.
        self.pending: dict[str, Pod] = {}
        #: The last complaints about objects and API calls, oldest first.
        self.problems: list[str] = []

    def handle(self, old: RawObject | None, new: RawObject | None) -> None:
        """One change: created (old None), updated, or deleted (new None)."""
        raw = new if new is not None else old
        if raw is None:
            return
        kind = kind_of(raw)
        try:
            if kind == "Pod":
                self._pod(new, raw)
            elif kind == "Node":
                self._node(old, new)
            elif kind in WATCHED:
                self._other(kind, old, new)
        except ValueError as e:
            meta = raw.get("metadata", {})
            self.complain(f"{kind} {meta.get('namespace', '')}/{meta.get('name', '')}: {e}")

    def complain(self, text: str) -> None:
        """Keep a complaint; old ones make room."""
        self.problems.append(text)
        del self.problems[:-_COMPLAINTS]

    # --- nodes and others -----------------------------------------------------------------------------------

    def _node(self, old: RawObject | None, new: RawObject | None) -> None:
        if new is None:
            assert old is not None
            node = typed(old, "Node")
            assert isinstance(node, Node)
            self._queue.move_all(_NODE_DELETED, node, None)
            self._cache.remove_node(node.name)
            return
        node = typed(new, "Node")
        assert isinstance(node, Node)
        known = self._cache.nodes.get(node.name)
        before = known.node if known is not None and known.has_node else None
        if before is None:
            self._cache.add_node(node)
            self._queue.move_all(_NODE_ADDED, None, node)
            return
        self._cache.update_node(node)
        for event in node_events(before, node):
            self._queue.move_all(event, before, node)

    def _other(self, kind: str, old: RawObject | None, new: RawObject | None) -> None:
        resource = WATCHED[kind]
        if new is None:
            assert old is not None
            gone = typed(old, kind)
            self._informer.remove(kind, gone.namespace, gone.name)
            self._queue.move_all(ClusterEvent(resource, ActionType.DELETE), gone, None)
            return
        obj = typed(new, kind)
        before = self._informer.get(kind, obj.namespace, obj.name)
        self._informer.put(kind, obj)
        action = ActionType.ADD if before is None else ActionType.UPDATE
        self._queue.move_all(ClusterEvent(resource, action), before, obj)

    # --- pods -------------------------------------------------------------------------------------------------

    def _pod(self, new: RawObject | None, raw: RawObject) -> None:
        meta = raw.get("metadata", {})
        key = (str(meta.get("namespace", "")), str(meta.get("name", "")))
        before: Pod | None = self._informer.get("Pod", *key)
        pod: Pod | None = None
        if new is not None and (new.get("status") or {}).get("phase") not in _TERMINAL:
            found = typed(new, "Pod")
            assert isinstance(found, Pod)
            pod = found
        if before is not None and pod is not None and before.uid != pod.uid:
            self._removed(before)
            before = None
        if pod is None:
            if before is not None:
                self._informer.remove("Pod", *key)
                self._removed(before)
            return
        self._informer.put("Pod", pod)
        if before is None:
            self._appeared(pod)
        else:
            hand_on(before, pod)
            self._changed(before, pod)

    def _ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._frameworks

    def _appeared(self, pod: Pod) -> None:
        if pod.spec.node_name:
            self._cache.add_pod(pod)
            self._queue.move_all(_POD_ADDED, None, pod)
        elif self._ours(pod):
            self.pending[pod.uid] = pod
            self._queue.add(pod)
            if pod.spec.scheduling_group is not None:
                # Others of its group may have waited for it.
                self._queue.move_all(_POD_WAITS, None, pod)

    def _changed(self, old: Pod, new: Pod) -> None:
        if old.spec.node_name:
            self._cache.update_pod(new)
            for event in pod_events(old, new):
                self._queue.move_all(event, old, new)
            return
        if new.spec.node_name:
            self.pending.pop(new.uid, None)
            self._cache.add_pod(new)
            self._queue.move_all(_POD_ADDED, None, new)
            if self._ours(new):
                self._queue.delete(old)
            return
        if not self._ours(new) or old.metadata.resource_version == new.metadata.resource_version != "":
            return
        self.pending[new.uid] = new
        if self._cache.is_assumed(new):
            if new.terminating and not old.terminating:
                self._assumed_deleted(new)
            return
        self._queue.update(old, new, pod_events(old, new))
        nominated = old.status.nominated_node_name
        if nominated and nominated != new.status.nominated_node_name:
            self._queue.move_all(_POD_DELETED, old, None, lambda p: p.priority <= old.priority)

    def _removed(self, pod: Pod) -> None:
        if pod.spec.node_name:
            self._cache.remove_pod(pod)
            self._queue.move_all(_POD_DELETED, pod, None)
            return
        self.pending.pop(pod.uid, None)
        if not self._ours(pod):
            return
        self._queue.delete(pod)
        if self._cache.is_assumed(pod):
            self._assumed_deleted(pod)
        elif pod.status.nominated_node_name:
            self._queue.move_all(_POD_DELETED, pod, None, lambda p: p.priority <= pod.priority)

    def _assumed_deleted(self, pod: Pod) -> None:
        assumed = self._cache.get_pod(pod.uid)
        waiting = self._waiting.get(pod.uid)
        if waiting is not None:
            waiting.reject("", "removed")
        elif assumed is not None:
            self._cache.forget(assumed)
        if assumed is not None:
            self._queue.move_all(_POD_DELETED, assumed, None)

    # --- for others -------------------------------------------------------------------------------------------

    def current(self, pod: Pod) -> Pod | None:
        """The latest known version of a pod, whatever its UID; None when it is gone."""
        found: Pod | None = self._informer.get("Pod", pod.namespace, pod.name)
        return found
