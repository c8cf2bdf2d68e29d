"""Checks of leader election: who leads by the records seen, and electors that contend for a lease."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from labkit.check.lease_race import (
    DURATION,
    FIELDS,
    Contender,
    Elector,
    Race,
    Record,
    Write,
    lease_race,
    written,
)
from labkit.check.plugins import VISIBLE
from labkit.check.report import Case, Exercise, Words, show
from labkit.i18n import t

Look = tuple[float, Record]


def contenders(seed: int) -> list[Contender]:
    """Three, with clocks that differ. Mostly each hands over to the next, one killed and one stopped; every third
    time all are there from the start."""
    rng = random.Random(f"labkit-check/lease/{seed}")
    # One is so fast that a living holder's renewTime looks over to it, one so slow that a dead one's does not.
    clocks = [0, *rng.sample([rng.choice((18, 20, 35)), rng.choice((-40, -25, -14))], 2)]
    # Late enough for the second to have taken over, also after a kill.
    last_start = 0.5 if seed % 3 == 2 else 52.0
    ways = ("kill", "stop") if seed % 2 == 0 else ("stop", "kill")
    return [
        Contender("a", clocks[0], 0.0, 20 + rng.randrange(40) / 4, ways[0]),
        Contender("b", clocks[1], 0.25, 70 + rng.randrange(40) / 4, ways[1]),
        Contender("c", clocks[2], last_start),
    ]


# --- who leads? -------------------------------------------------------------------------------------------------


def looks(seed: int) -> list[Look]:
    """What an observer saw of a lease: (its own clock, the record), every 2 to 4.4 seconds."""
    rng = random.Random(f"labkit-check/looks/{seed}")
    race = lease_race(Elector, contenders(seed), seed=seed)
    ahead = rng.choice((0, 17, 40))
    seen: list[Look] = []
    time = 0.5
    while time < 90:
        record = [r for at, _, r in race.history if at <= time][-1]
        seen.append((time + ahead, dict(record)))
        time += 2 + rng.randrange(10) / 4
    return seen


def _leader(seen: Sequence[Look], now: float) -> str | None:
    last: Record | None = None
    since = 0.0
    for time, record in seen:
        if record != last:
            last, since = record, time
    if last is None or not last["holderIdentity"] or now >= since + last["leaseDurationSeconds"]:
        return None
    return str(last["holderIdentity"])


def leader(
    function: Callable[[list[Look], float], str | None],
    *,
    points: float,
    seeds: Iterable[int] = VISIBLE,
    hint: Words | None = None,
) -> Exercise:
    """`function(looks, now)` must name who leads at `now`, by looks made until then; None for nobody.

    Each case holds questions with and without an answer, so that no constant answer passes one.
    """
    exercise = Exercise(points)
    for number, seed in enumerate(seeds, 1):
        seen = looks(seed)
        held, over = _questions(seen)
        with exercise.case(
            f"lease {number}: who leads", f"Lease {number}：谁是 leader", weight=1, hint=hint
        ) as case:
            for now in held:
                _ask(case, function, seen, now)
            _ask(case, function, [], held[0])
        with exercise.case(
            f"lease {number}: nobody leads, or somebody again",
            f"Lease {number}：没有 leader，或者又有了",
            weight=3,
            hint=hint,
        ) as case:
            for now in [held[0], *over, held[-1]]:
                _ask(case, function, seen, now)
    return exercise


def _questions(seen: Sequence[Look]) -> tuple[list[float], list[float]]:
    """Moments with a leader and moments without or around a change."""
    moments: list[float] = []
    last: Record | None = None
    for time, record in seen:
        moments += [time, time + 1.25]
        if record != last:
            last = record
            # The quarter second before it runs out, and the moment itself; as if nobody looked any more.
            moments += [time + record["leaseDurationSeconds"] - 0.25, time + record["leaseDurationSeconds"]]
    answers = {m: _leader([x for x in seen if x[0] <= m], m) for m in sorted(set(moments))}
    held = [m for m, who in answers.items() if who is not None]
    over = [m for m, who in answers.items() if who is None]
    return held[:: max(1, len(held) // 8)], over


def _ask(case: Case, function: Any, seen: Sequence[Look], now: float) -> None:
    known = [(time, dict(record)) for time, record in seen if time <= now]
    wanted = _leader(known, now)
    case.table(
        [t("my clock", "我的时钟"), "holderIdentity", "renewTime", "leaseDurationSeconds"],
        [
            [f"{x:g}", r["holderIdentity"] or '""', f"{r['renewTime']:g}", r["leaseDurationSeconds"]]
            for x, r in known[-6:]
        ],
    )
    got = function([(time, dict(record)) for time, record in known], now)
    if (got is None or type(got) is str) and got == wanted:
        return
    why = _why(known, now, wanted)
    case.fail(
        f"at {now:g} s: expected {wanted!r}, got {show(got)}; {why}",
        f"{now:g} 秒时：应为 {wanted!r}，得到 {show(got)}；{why}",
    )


def _why(known: Sequence[Look], now: float, wanted: str | None) -> str:
    if not known:
        return t("nobody has looked yet", "还没有人看过")
    last, since = known[-1][1], known[-1][0]
    for time, record in reversed(known):
        if record != last:
            break
        since = time
    if not last["holderIdentity"]:
        return t("the lease was released", "Lease 已被释放")
    age = now - since
    return t(
        f"this record was first seen {age:g} s ago, and it is good for {last['leaseDurationSeconds']} s",
        f"这条记录在 {age:g} 秒前首次看到，有效期为 {last['leaseDurationSeconds']} 秒",
    )


# --- electors ---------------------------------------------------------------------------------------------------


def elector(
    make: Any, *, points: float, seeds: Iterable[int] = VISIBLE, hint: Words | None = None
) -> Exercise:
    """`make(identity).attempt(lease, now)` must follow client-go's rule (`labkit.check.lease_race`)."""
    exercise = Exercise(points)
    for number, seed in enumerate(seeds, 1):
        given = contenders(seed)
        races: list[Race] = []
        with exercise.case(
            f"race {number}: who leads when", f"竞选 {number}：谁何时是 leader", weight=3, hint=hint
        ) as case:
            races.append(lease_race(make, given, seed=seed))
            _turns(case, given, races[0], lease_race(Elector, given, seed=seed))
        with exercise.case(
            f"race {number}: what is written", f"竞选 {number}：写入的内容", weight=1, hint=hint
        ) as case:
            race = races[0] if races else lease_race(make, given, seed=seed)
            case.true(len(race.writes) > 1, "the lease is hardly ever written", "几乎没有写过 Lease")
            for write in race.writes:
                _record(case, write)
    return exercise


def _turns(case: Case, given: list[Contender], got: Race, wanted: Race) -> None:
    case.table(
        [
            t("contender", "竞选者"),
            t("clock ahead by (s)", "时钟快（秒）"),
            t("ends at (s)", "结束于（秒）"),
            t("how", "方式"),
        ],
        [
            [
                c.identity,
                f"{c.clock:g}",
                f"{c.end:g}" if c.end is not None else "–",
                c.how if c.end is not None else "–",
            ]
            for c in given
        ],
    )
    mine, right = got.takes, wanted.takes
    for i in range(max(len(mine), len(right))):
        have = mine[i] if i < len(mine) else None
        want = right[i] if i < len(right) else None
        if have and want and (have.time, have.identity) == (want.time, want.identity):
            continue
        if have and (want is None or have.time <= want.time):
            _too_early(case, have)
        assert want is not None
        _too_late(case, given, want, have)


def _too_early(case: Case, take: Write) -> None:
    holder = (take.before or {}).get("holderIdentity", "")
    age = take.time - take.before_time
    en = f"{take.identity} took the lease at {take.time:g} s"
    zh = f"{take.identity} 在 {take.time:g} 秒时取得 Lease"
    if take.before_alive:
        case.fail(
            f"{en}: {holder} had renewed it {age:g} s before and still works, so two lead at once",
            f"{zh}：{holder} 在 {age:g} 秒前刚续租，仍在工作，于是同时有两个 leader",
        )
    case.fail(
        f"{en}, {age:g} s after the last change: {DURATION} s must pass on its own clock since it saw that",
        f"{zh}，距上次变化 {age:g} 秒：从自己看到那次变化起，按自己的时钟必须过 {DURATION} 秒",
    )


def _too_late(case: Case, given: list[Contender], want: Write, have: Write | None) -> None:
    holder = (want.before or {}).get("holderIdentity", "")
    ended = next((c.end for c in given if c.identity == holder), None)
    if want.before is None:
        en, zh = "there was no lease", "还没有 Lease"
    elif holder:
        en = f"{holder}, killed at {ended or 0:g} s, has not renewed for {want.time - want.before_time:g} s"
        zh = f"{holder} 在 {ended or 0:g} 秒被强杀，已有 {want.time - want.before_time:g} 秒没有续租"
    else:
        en = f"it was released at {want.before_time:g} s: no holder, nobody to wait for"
        zh = f"它在 {want.before_time:g} 秒被释放：没有持有者，不必等谁"
    then_en = f"{have.identity} did so at {have.time:g} s" if have else "nobody ever did"
    then_zh = f"{have.identity} 到 {have.time:g} 秒才取得" if have else "却一直没有人取得"
    case.fail(
        f"{want.identity} should take the lease at {want.time:g} s ({en}); {then_en}",
        f"{want.identity} 应在 {want.time:g} 秒取得 Lease（{zh}）；{then_zh}",
    )


def _record(case: Case, write: Write) -> None:
    right = written(write.identity, write.before, write.now)
    case.table(
        [t("field", "字段"), t("before", "之前"), t("written", "写入"), t("right", "应为")],
        [[f, show((write.before or {}).get(f)), show(write.record[f]), show(right[f])] for f in FIELDS],
    )
    what_en = "takes" if write.takes else "renews"
    what_zh = "取得" if write.takes else "续租"
    for name in FIELDS:
        value = write.record[name]
        if type(value) not in (int, float, str) or value != right[name]:
            case.fail(
                f"{write.identity} {what_en} the lease at {write.time:g} s (its clock: {write.now:g}): "
                f"{name} must be {right[name]!r}, not {show(value)}",
                f"{write.identity} 在 {write.time:g} 秒{what_zh} Lease（它的时钟：{write.now:g}）："
                f"{name} 应为 {right[name]!r}，而不是 {show(value)}",
            )
