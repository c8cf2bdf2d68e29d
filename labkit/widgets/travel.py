"""Steps on a lab that can be taken back and forward again: what the queue view and the playground drive with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from labkit.engine.trace import Trace
from labkit.i18n import t
from labkit.widgets import view as v
from labkit.widgets.view import Block

if TYPE_CHECKING:
    from labkit.lab import Lab


class Travel:
    """The steps made here, in order. Going back rewinds the lab; going forward makes the same steps again.

    `on_rewind` is called after the lab began anew, for who holds something of it.
    """

    def __init__(self, lab: Lab, on_rewind: Callable[[], Any] = lambda: None) -> None:
        self.lab = lab
        self._steps: list[tuple[Callable[[], Any], str]] = []
        self._at = 0
        #: What `lab.history` was before each step made: cells of the notebook may act on the lab in between.
        self._history: list[int] = []
        self._on_rewind = on_rewind

    @property
    def at(self) -> int:
        """Steps made so far."""
        return self._at

    @property
    def most(self) -> int:
        """Steps that are known, those taken back included."""
        return len(self._steps)

    @property
    def last(self) -> str:
        """The last step in words; "" before the first."""
        return self._steps[self._at - 1][1] if self._at else ""

    def do(self, action: Callable[[], Any], words: str) -> Any:
        """A new step; what was taken back before is forgotten."""
        self._catch_up()
        del self._steps[self._at :]
        self._steps.append((action, words))
        return self._make()

    def _make(self) -> Any:
        self._history.append(self.lab.history)
        self._at += 1
        return self._steps[self._at - 1][0]()

    def _catch_up(self) -> None:
        """Steps that a rewind from elsewhere took back are not made any more."""
        while self._history and self._history[-1] >= self.lab.history:
            self._history.pop()
            self._at -= 1

    def go(self, to: int) -> None:
        """Be where `to` steps have been made; what a cell did after them is taken back as well."""
        self._catch_up()
        to = min(max(to, 0), self.most)
        if to < self._at:
            self.lab.rewind(self.lab.history - self._history[to])
            del self._history[to:]
            self._at = to
            self._on_rewind()
        while self._at < to:
            self._make()

    def step(self) -> None:
        """The next pod, if one is ready."""
        if self.lab.queue.active:
            self.do(self.lab.schedule_one, t("step", "单步"))

    def run(self) -> None:
        """All pods that are ready."""
        if self.lab.queue.active:
            self.do(self.lab.run, t("run", "运行"))

    def advance(self, seconds: float) -> None:
        """Time passes."""
        self.do(lambda: self.lab.advance(seconds), f"+ {seconds:g} s")

    def last_trace(self) -> Trace | None:
        """The latest decision."""
        traces = self.lab.traces
        return traces[-1] if traces else None

    def buttons(self, advances: tuple[float, ...] = (10,)) -> list[Block]:
        """◂ Back, Step ▸, Run, and + seconds."""
        self._catch_up()
        idle = not self.lab.queue.active
        found = [
            v.button("back", t("◂ Back", "◂ 后退"), disabled=self._at == 0),
            v.button("step", t("Step ▸", "单步 ▸"), primary=True, disabled=idle),
            v.button("run", t("Run", "运行"), disabled=idle),
        ]
        for seconds in advances:
            words = f"+ {seconds / 60:g} min" if seconds >= 60 else f"+ {seconds:g} s"
            label = t(f"let {seconds:g} seconds pass", f"让时间前进 {seconds:g} 秒")
            found.append(v.button(f"advance.{seconds:g}", words, label=label))
        return found

    def handle(self, id: str, value: Any) -> bool:
        """The buttons above and `time` (a number of steps). True when it was one of them."""
        if id == "back":
            self.go(self._at - 1)
        elif id == "step":
            self.step()
        elif id == "run":
            self.run()
        elif id == "time":
            self.go(int(value))
        elif id.startswith("advance."):
            self.advance(float(id.removeprefix("advance.")))
        else:
            return False
        return True

    def slider(self) -> list[Block]:
        """Time travel; nothing before the first step."""
        if not self.most:
            return []
        return [
            v.controls(
                v.slider(
                    "time",
                    t("Step in time", "时间步"),
                    self._at,
                    min=0,
                    max=self.most,
                    step=1,
                    figure=t(f"{self._at} of {self.most}", f"{self._at} / {self.most}"),
                )
            )
        ]
