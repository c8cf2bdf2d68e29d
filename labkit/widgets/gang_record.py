"""What became of each attempt that booked a node: read from the lab's traces and from the pods that Permit holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from labkit.engine.trace import Trace
from labkit.engine.waiting import Waiting

if TYPE_CHECKING:
    from labkit.lab import Lab

Outcome = Literal["no room", "held", "bound", "timed out", "rejected", "refused", "failed", "deleted"]
_TIMED_OUT = "rejected due to timeout"


@dataclass
class Hold:
    """Permit held `pod` on `node`. Times in virtual seconds; `began` and `ended` count the lab's history, to follow
    it back in time; `after`: attempts that had begun when it ended."""

    pod: str
    node: str
    start: float
    deadlines: dict[str, float]
    began: int
    end: float | None = None
    ended: int = 0
    after: int = 0


@dataclass(frozen=True)
class Attempt:
    """One attempt of `pod`. `node`: booked by Reserve, None when no node was chosen. `end` None: still held.

    `before_filter`: a PreFilter plugin refused the pod. `turn`: its place among all attempts; `end_turn`: the place of the last one that had begun when it ended.
    """

    turn: int
    end_turn: int
    pod: str
    number: int
    start: float
    end: float | None
    node: str | None
    outcome: Outcome
    plugins: tuple[str, ...]
    deadlines: tuple[tuple[str, float], ...]
    message: str
    before_filter: bool = False

    @property
    def held(self) -> bool:
        """Permit said Wait."""
        return bool(self.plugins)


class GangRecord:
    """Follows a lab: every change in the cluster is a moment to look who is held. Call `listen` before reading."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._holds: list[Hold] = []
        self._store: Any = None
        self.listen()

    def listen(self) -> None:
        """Follow the lab of now: after a rewind it has another store and another scheduler."""
        if self._store is not self.lab.store:
            self._store = self.lab.store
            self._store.subscribe(lambda *_: self._look())
            self._forget()
        self._look()

    def _forget(self) -> None:
        """What has not happened yet is unknown; what has not ended yet is open again."""
        at = self.lab.history
        self._holds = [h for h in self._holds if h.began <= at]
        for hold in self._holds:
            if hold.ended > at:
                hold.end, hold.ended = None, 0

    def _look(self) -> None:
        lab = self.lab
        if self._store is not lab.store:
            return
        start, now = lab.clock.start, lab.now
        held = {(w.pod.key, w.started - start): w for w in lab.scheduler.waiting.list()}
        for hold in self._holds:
            if hold.end is None and held.pop((hold.pod, hold.start), None) is None:
                hold.end, hold.ended, hold.after = now, lab.history, len(lab.traces)
        self._holds += [self._new(key, waiting) for key, waiting in held.items()]

    def _new(self, key: tuple[str, float], waiting: Waiting) -> Hold:
        pod, began = key
        until = {p: when - self.lab.clock.start for p, when in waiting.deadlines.items()}
        return Hold(pod, waiting.pod.spec.node_name, began, until, self.lab.history)

    def attempts(self) -> list[Attempt]:
        """All attempts that the lab remembers, oldest first."""
        known: dict[tuple[str, float], list[Hold]] = {}
        for hold in self._holds:
            known.setdefault((hold.pod, hold.start), []).append(hold)
        # One pod may be held twice in one moment: then in the order of its attempts.
        turns: dict[tuple[str, float], Iterator[Hold]] = {key: iter(holds) for key, holds in known.items()}
        found = []
        for turn, trace in enumerate(self.lab.traces):
            if trace.skipped is not None:
                continue
            start = trace.time - self.lab.clock.start
            waited = [
                text for point, text in trace.steps if point == "Permit" and text.startswith("waits for ")
            ]
            held = next(turns.get((trace.pod, start), iter(())), None) if waited else None
            found.append(_attempt(turn, trace, start, waited, held))
        return found


def _attempt(turn: int, trace: Trace, start: float, waited: list[str], hold: Hold | None) -> Attempt:
    plugins = tuple(waited[0].removeprefix("waits for ").split(", ")) if waited else ()
    bound = any(point == "Bind" and text.startswith("Successfully") for point, text in trace.steps)
    chosen = bound or bool(waited) or any(s.is_success for s in trace.filter.values())
    node = trace.node or (hold.node if hold is not None else None)
    if node is None and chosen and len(trace.best) == 1:
        node = trace.best[0]
    end: float | None = start
    outcome: Outcome
    if hold is not None:
        end = hold.end
    if bound:
        outcome = "bound"
    elif waited and hold is not None and hold.end is None:
        outcome, end = "held", None
    elif waited and trace.message is None:
        outcome = "deleted"
    elif not chosen:
        outcome = "no room"
    elif trace.error is not None and not trace.error.is_rejected:
        outcome = "failed"
    elif _TIMED_OUT in (trace.message or ""):
        outcome = "timed out"
    else:
        outcome = "rejected" if waited else "refused"
    until = tuple(sorted(hold.deadlines.items())) if hold is not None else ()
    after = max(turn, hold.after - 1) if hold is not None else turn
    return Attempt(
        turn,
        after,
        trace.pod,
        trace.attempt,
        start,
        end,
        node,
        outcome,
        plugins,
        until,
        trace.full_message or "",
        not chosen and any(r.status.is_rejected for r in trace.pre_filter_plugins.values()),
    )
