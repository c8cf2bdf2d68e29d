"""The node side of the lab's cluster: placed pods start, deleted pods end their grace period, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol

from labkit.cluster.store import Store

Json = dict[str, Any]


class TimerClock(Protocol):
    """Now, and calls in the future."""

    def now(self) -> float:
        """Seconds since the Unix epoch."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Any:
        """Call `callback` at `when`."""


class NodeAgent:
    """Plays the kubelets of all nodes: a placed pod is Running at once, a deleted one is gone after its grace period."""

    def __init__(self, store: Store, clock: TimerClock) -> None:
        self._store = store
        self._clock = clock
        self._ending: set[str] = set()
        store.subscribe(self._on_change)

    def _on_change(self, type_: str, old: Json | None, new: Json | None) -> None:
        if new is None or new.get("kind") != "Pod":
            return
        spec, status, meta = new.get("spec") or {}, new.get("status") or {}, new["metadata"]
        if not spec.get("nodeName"):
            return
        if meta.get("deletionTimestamp"):
            if meta["uid"] not in self._ending:
                self._ending.add(meta["uid"])
                seconds = float(meta.get("deletionGracePeriodSeconds") or 0)
                self._clock.call_at(self._clock.now() + seconds, lambda: self._end(meta))
        elif status.get("phase") in (None, "", "Pending"):
            self._start(meta)

    def _start(self, meta: Json) -> None:
        when = datetime.fromtimestamp(self._clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        patch = {"status": {"phase": "Running", "startTime": when}}
        self._quietly(
            lambda: self._store.patch("Pod", meta["name"], meta["namespace"], patch, "strategic", "status")
        )

    def _end(self, meta: Json) -> None:
        self._ending.discard(meta["uid"])
        self._quietly(
            lambda: self._store.delete("Pod", meta["name"], meta["namespace"], 0, {"uid": meta["uid"]})
        )

    @staticmethod
    def _quietly(call: Callable[[], Any]) -> None:
        try:
            call()
        except Exception as e:
            # Somebody else was faster: the pod is gone or has changed.
            if getattr(e, "code", None) not in (404, 409):
                raise
