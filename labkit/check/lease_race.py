"""Contenders for one lease in virtual time: whatever rule they follow, who holds it when.

    race = lease_race(Elector, [Contender("a"), Contender("b", clock=40)], seed=1)
    print(race)

`Elector(identity).attempt(lease, now)` gets the record as it is (None: there is none) and the contender's own clock,
and answers with the record to write, or None to leave it. Times are multiples of a quarter second, so that sums of
them are exact.
"""

from __future__ import annotations

import copy
import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from labkit.i18n import t

Record = dict[str, Any]
DURATION, RENEW_DEADLINE, RETRY = 15, 10.0, 2.0
FIELDS = ("holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions")
_JITTER = 1.2


@dataclass(frozen=True)
class Contender:
    """Its `clock` is so many seconds ahead of true time; it begins at `start` and ends at `end`.

    `how` it ends: "kill" (at once) or "stop" (it releases the lease first).
    """

    identity: str
    clock: float = 0.0
    start: float = 0.0
    end: float | None = None
    how: str = "kill"


@dataclass(frozen=True)
class Write:
    """A record written at `time` (true time; `now` by the writer's clock) over `before`."""

    time: float
    now: float
    identity: str
    record: Record
    before: Record | None
    #: When `before` was written, and whether its holder was at work still.
    before_time: float = 0.0
    before_alive: bool = False

    @property
    def takes(self) -> bool:
        """The holder changes."""
        return self.before is None or self.before.get("holderIdentity") != self.identity


@dataclass
class Race:
    """What was written, releases included; `takes` are the changes of the holder."""

    contenders: list[Contender]
    writes: list[Write] = field(default_factory=list)
    #: (time, identity, record) after each change, releases included.
    history: list[tuple[float, str, Record]] = field(default_factory=list)

    @property
    def takes(self) -> list[Write]:
        """Writes with which the lease went to somebody else."""
        return [w for w in self.writes if w.takes]

    def __str__(self) -> str:
        told = [(w.time, _told(w)) for w in self.takes]
        for c in self.contenders:
            if c.end is not None:
                words = (
                    t(f"{c.identity} is killed", f"{c.identity} 被强杀")
                    if c.how == "kill"
                    else t(f"{c.identity} stops and releases", f"{c.identity} 停止并释放")
                )
                told.append((c.end, words))
        return "\n".join(f"{time:6.2f} s  {words}" for time, words in sorted(told))


def _told(write: Write) -> str:
    if write.before is None or not write.before.get("holderIdentity"):
        return t(f"{write.identity} takes the free lease", f"{write.identity} 取得空闲的 Lease")
    holder, age = write.before["holderIdentity"], write.time - write.before_time
    if write.before_alive:
        return t(
            f"{write.identity} steals the lease: {holder} renewed it {age:g} s ago and still works",
            f"{write.identity} 抢走了 Lease：{holder} 在 {age:g} 秒前刚续租，仍在工作",
        )
    return t(
        f"{write.identity} takes the lease, last renewed by {holder} {age:g} s ago",
        f"{write.identity} 取得 Lease，{holder} 上次续租在 {age:g} 秒前",
    )


class Elector:
    """The rule of client-go."""

    def __init__(self, identity: str) -> None:
        self.identity = identity
        self._seen: Record | None = None
        self._since = 0.0

    def attempt(self, lease: Record | None, now: float) -> Record | None:
        """The record to write, or None when another one holds the lease."""
        if lease is None:
            return written(self.identity, None, now)
        if lease != self._seen:
            self._seen, self._since = lease, now
        holder = lease["holderIdentity"]
        if holder not in ("", self.identity) and now < self._since + lease["leaseDurationSeconds"]:
            return None
        return written(self.identity, lease, now)


def written(identity: str, before: Record | None, now: float) -> Record:
    """What a contender that takes or renews the lease writes over `before`."""
    mine = before is not None and before["holderIdentity"] == identity
    return {
        "holderIdentity": identity,
        "leaseDurationSeconds": DURATION,
        "acquireTime": before["acquireTime"] if before is not None and mine else now,
        "renewTime": now,
        "leaseTransitions": before["leaseTransitions"] + (not mine) if before is not None else 0,
    }


@dataclass
class _Running:
    contender: Contender
    elector: Any
    pauses: random.Random
    alive: bool = True
    leads: bool = False
    renewed: float = 0.0


def lease_race(
    make: Callable[[str], Any], contenders: Sequence[Contender], *, seed: int = 0, seconds: float = 120
) -> Race:
    """Let them contend. A leader that could not renew for 10 s ends, as kube-scheduler does.

    Raises what an elector raises, and TypeError or ValueError for an answer that is no record of its own.
    """
    race = Race(list(contenders))
    running = {
        c.identity: _Running(c, make(c.identity), random.Random(f"lease/{seed}/{c.identity}"))
        for c in contenders
    }
    due: list[tuple[float, int, int, str]] = []
    for i, c in enumerate(contenders):
        heapq.heappush(due, (c.start, 1, i, c.identity))
        if c.end is not None:
            heapq.heappush(due, (c.end, 0, i, c.identity))
    while due and due[0][0] <= seconds:
        time, is_attempt, i, identity = heapq.heappop(due)
        runs = running[identity]
        if not runs.alive:
            continue
        if not is_attempt:
            _end(race, runs, time)
            continue
        _attempt(race, running, runs, time)
        if runs.alive:
            pause = RETRY if runs.leads else _quarters(RETRY * (1 + _JITTER * runs.pauses.random()))
            heapq.heappush(due, (time + pause, 1, i, identity))
    return race


def _attempt(race: Race, running: dict[str, _Running], runs: _Running, time: float) -> None:
    identity, now = runs.contender.identity, time + runs.contender.clock
    before_time, _, before = race.history[-1] if race.history else (0.0, "", None)
    answer = runs.elector.attempt(copy.deepcopy(before), now)
    if answer is None:
        if runs.leads and time - runs.renewed > RENEW_DEADLINE:
            runs.leads = runs.alive = False
        return
    _check(answer, identity)
    holder = before["holderIdentity"] if before else ""
    works = holder in running and holder != identity and running[holder].alive and running[holder].leads
    record = copy.deepcopy(answer)
    race.writes.append(Write(time, now, identity, record, copy.deepcopy(before), before_time, works))
    race.history.append((time, identity, record))
    runs.leads, runs.renewed = True, time


def _check(answer: Any, identity: str) -> None:
    if type(answer) is not dict:
        raise TypeError(
            t(
                f"attempt returned a {type(answer).__name__}, not a record (dict) or None",
                f"attempt 返回了 {type(answer).__name__}，而不是记录（dict）或 None",
            )
        )
    missing = [f for f in FIELDS if f not in answer]
    if missing:
        names = ", ".join(missing)
        raise ValueError(t(f"the record lacks {names}", f"记录缺少 {names}"))
    if answer["holderIdentity"] != identity:
        raise ValueError(
            t(
                f"{identity} wrote the lease for {answer['holderIdentity']!r}, not for itself",
                f"{identity} 写的持有者是 {answer['holderIdentity']!r}，而不是自己",
            )
        )


def _end(race: Race, runs: _Running, time: float) -> None:
    identity = runs.contender.identity
    if runs.contender.how == "stop" and race.history and race.history[-1][2]["holderIdentity"] == identity:
        now = time + runs.contender.clock
        released = {
            **race.history[-1][2],
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "acquireTime": now,
            "renewTime": now,
        }
        race.history.append((time, identity, released))
    runs.alive = runs.leads = False


def _quarters(seconds: float) -> float:
    return round(seconds * 4) / 4
