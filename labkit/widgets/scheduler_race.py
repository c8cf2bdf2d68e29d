"""Several schedulers on one cluster: who saw what, who bound, where they collide; three ways to run them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from labkit.errors import LabError
from labkit.i18n import t
from labkit.several import Member, SeveralSchedulers
from labkit.widgets import view as v
from labkit.widgets.race_lanes import log_table, picture, short
from labkit.widgets.race_tables import decisions, notices, scheduler_of, schedulers
from labkit.widgets.scene import clock_text
from labkit.widgets.view import Block

NAMES, ELECTED, RACE, GIVEN = "names", "elected", "race", "given"
_DELAYS = (0.0, 3.0, 0.5)
_ADVANCES = (1, 20)


class SchedulerRaceController:
    """Drives the schedulers given: a step is a real attempt. Another mode or delay begins anew with those members."""

    def __init__(self, several: SeveralSchedulers) -> None:
        self.several = several
        self._given = list(several.members)
        self.mode = _mode_of(self._given)
        self.delay: float | None = None
        self._steps: list[Callable[[], Any]] = []

    # --- what the learner does ------------------------------------------------------------------------------

    def handle(self, id: str, value: Any) -> None:
        """`step`, `run`, `advance.<s>`, `back`, `reset`, `stop.<identity>`, `kill.<identity>`, `mode`, `delay` (s)."""
        what, _, which = id.partition(".")
        if what == "step":
            self._do(self.several.step)
        elif what == "run":
            self._do(self.several.run)
        elif what == "advance":
            seconds = float(which)
            self._do(lambda: self.several.advance(seconds))
        elif what in ("stop", "kill"):
            end = self.several.stop if what == "stop" else self.several.kill
            self._do(lambda: end(which))
        elif what == "back" and self._steps:
            self._again(self._steps[:-1])
        elif what == "reset":
            self._again([])
        elif what == "mode":
            self._change(str(value), self.delay)
        elif what == "delay":
            seconds = float(value)
            if not 0 <= seconds <= _DELAYS[1]:
                raise ValueError(
                    t(
                        f"the delay must be from 0 to {_DELAYS[1]:g} s",
                        f"延迟必须在 0 到 {_DELAYS[1]:g} 秒之间",
                    )
                )
            self._change(self.mode, seconds)

    def _do(self, step: Callable[[], Any]) -> None:
        step()
        self._steps.append(step)

    def _again(self, steps: list[Callable[[], Any]]) -> None:
        """From the start: the same steps give the same log."""
        self.several.reset()
        self._steps = []
        for step in steps:
            self._do(step)

    def _change(self, mode: str, delay: float | None) -> None:
        if mode not in dict(self._modes()):
            raise LabError(
                t(f"there is no mode {mode!r}", f"没有模式 {mode!r}"), hint=", ".join(dict(self._modes()))
            )
        before = self.several.members
        self.several.members = self._members(mode, delay)
        try:
            self.several.reset()
        except LabError:
            # A config without the profile that this mode needs: stay where we were.
            self.several.members = before
            self.several.reset()
            raise
        finally:
            self._steps = []
        self.mode, self.delay = mode, delay

    def _members(self, mode: str, delay: float | None) -> list[Member]:
        members = self._given if delay is None else [replace(m, delay=delay) for m in self._given]
        if mode == GIVEN or mode == _mode_of(self._given):
            return list(members)
        if mode == NAMES:
            names = self._names()
            return [replace(m, name=n, leader_election=False) for m, n in zip(members, names, strict=True)]
        first = members[0].name
        return [replace(m, name=first, lease="", leader_election=mode == ELECTED) for m in members]

    def _names(self) -> list[str]:
        """A name for each: its own, else one that pods ask for, else its identity."""
        asked = [scheduler_of(p) for p in self.several.pods()]
        names: list[str] = []
        for m in self._given:
            free = [n for n in (m.name, *asked, m.identity) if n not in names]
            names.append(free[0])
        return names

    def _modes(self) -> list[tuple[str, str]]:
        modes = [
            (NAMES, t("different names", "名字不同")),
            (ELECTED, t("same name, leader election", "同名，有 leader election")),
            (RACE, t("same name, no election", "同名，没有 election")),
        ]
        return [*modes, (GIVEN, t("as given", "按给定"))] if _mode_of(self._given) == GIVEN else modes

    # --- what there is to see -------------------------------------------------------------------------------

    def view(self) -> list[Block]:
        """Clock and buttons, the verdict, lanes, what was decided on which knowledge, the schedulers."""
        blocks = [
            v.toolbar(
                t("Several schedulers", "多个调度器"),
                sub=dict(self._modes())[self.mode],
                clock=clock_text(self.several.now),
                clock_label=t("virtual clock", "虚拟时钟"),
                buttons=self._buttons(),
            ),
            self._verdict(),
            *notices(self.several),
        ]
        members = [m.identity for m in self.several.members]
        nodes = [n["metadata"]["name"] for n in self.several.nodes()]
        seen = {e.node for e in self.several.log if e.node}
        lanes = picture(self.several.log, members, [n for n in nodes if n in seen] or nodes[:4])
        blocks.append(
            v.card(
                t("What happened (moments in order, not to scale)", "发生了什么（按先后，不按比例）"), *lanes
            )
        )
        blocks.append(v.grid("minmax(0,1fr) 270px", decisions(self.several), self._controls()))
        blocks.append(v.card(t("The schedulers", "各调度器"), schedulers(self.several)))
        blocks.append(v.details(t("The log", "日志"), log_table(self.several.log)))
        return blocks

    def _buttons(self) -> list[Block]:
        found = [
            v.button("back", t("◂ Back", "◂ 后退"), disabled=not self._steps),
            v.button("step", t("Step ▸", "单步 ▸"), primary=True),
            v.button("run", t("Run", "运行")),
        ]
        for s in _ADVANCES:
            label = t(f"let {s} seconds pass", f"让时间前进 {s} 秒")
            found.append(v.button(f"advance.{s}", f"+ {s} s", label=label))
        found.append(v.button("reset", t("Reset", "重置"), disabled=not self._steps and not self.several.log))
        return found

    def _verdict(self) -> Block:
        counts = self.several.summary()
        log = self.several.log
        if counts["rejected"]:
            refused = [e for e in log if e.kind == "rejected"]
            names = ", ".join(short(e.pod) for e in refused)
            return v.verdict(
                t(
                    f"{_many(len(refused), 'pod')} bound in vain: the node refused {names}",
                    f"{len(refused)} 个 Pod 白绑定了：节点拒绝了 {names}",
                ),
                refused[-1].text,
                status="fail",
            )
        if counts["conflicts"]:
            lost = [e for e in log if e.kind == "conflict"]
            return v.verdict(
                t(
                    f"{_many(len(lost), 'attempt')} for nothing: the pod was bound already (409)",
                    f"{len(lost)} 次尝试白费：Pod 已被绑定（409）",
                ),
                lost[-1].text,
                status="wait",
            )
        if counts["bound"]:
            return v.verdict(
                t(
                    f"{_many(counts['bound'], 'pod')} bound, no conflict, nobody refused",
                    f"{counts['bound']} 个 Pod 已绑定，没有冲突，没有被拒绝",
                ),
                status="pass",
            )
        return v.verdict(t("Nothing is bound yet.", "还没有绑定任何 Pod。"))

    def _controls(self) -> Block:
        most = max(float(_seconds(m.delay)) for m in self.several.members)
        items = [
            v.controls(
                v.choice("mode", t("How they run", "运行方式"), self.mode, self._modes()),
                v.slider(
                    "delay",
                    t("News takes", "消息延迟"),
                    most,
                    min=_DELAYS[0],
                    max=_DELAYS[1],
                    step=_DELAYS[2],
                    figure=t(f"{most:g} s", f"{most:g} 秒"),
                ),
            ),
            v.text(
                t(
                    "Either change begins anew. Stop releases the lease, kill does not.",
                    "改动任一项都会重新开始。停止会释放 Lease，强杀不会。",
                ),
                mute=True,
            ),
        ]
        for m in self.several.members:
            over = self.several.state(m.identity) == "stopped"
            items.append(
                v.buttons(
                    v.button(
                        f"stop.{m.identity}", t(f"Stop {m.identity}", f"停止 {m.identity}"), disabled=over
                    ),
                    v.button(
                        f"kill.{m.identity}", t(f"Kill {m.identity}", f"强杀 {m.identity}"), disabled=over
                    ),
                )
            )
        return v.card(None, *items)

    def summary(self) -> str:
        """How they run, and what it came to."""
        s = self.several.summary()
        mode = dict(self._modes())[self.mode]
        return t(
            f"{mode}: {s['bound']} bound, {s['conflicts']} conflicts, {s['rejected']} refused by a node",
            f"{mode}：{s['bound']} 次绑定，{s['conflicts']} 次冲突，{s['rejected']} 次被节点拒绝",
        )


def _mode_of(members: list[Member]) -> str:
    names = {m.name for m in members}
    elected = {m.leader_election for m in members}
    if len(names) == len(members):
        return NAMES
    if len(names) > 1 or len(elected) > 1:
        return GIVEN
    return ELECTED if True in elected else RACE


def _seconds(delay: float | str) -> float:
    from labkit.reading import parse_duration

    return parse_duration(delay)


def _many(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
