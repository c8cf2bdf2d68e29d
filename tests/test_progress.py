"""The progress bar of long runs: where it is drawn, and where nothing may be."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest
from labkit import progress as bars
from labkit.lab import Lab


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True


def drawn(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, total: int) -> str:
    """What a run of `total` steps writes to stderr."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(bars, "_in_notebook", lambda: False)
    monkeypatch.setenv("TERM", "xterm")
    with bars.progress(total, "pods") as step:
        for _ in range(total):
            step(1)
    return stream.getvalue()


def test_a_terminal_sees_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text and count; the bar goes away at the end."""
    text = drawn(monkeypatch, Terminal(), bars.SHOWN_FROM)
    assert "pods" in text
    assert f"/{bars.SHOWN_FROM}" in text


@pytest.mark.parametrize(("stream", "total"), [(Terminal(), 10), (io.StringIO(), bars.SHOWN_FROM)])
def test_nothing_for_short_runs_and_files(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, total: int
) -> None:
    """Not a byte."""
    assert drawn(monkeypatch, stream, total) == ""


def test_a_notebook_sees_a_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    """It moves, and is closed at the end, also when the run fails."""
    import IPython.display
    import ipywidgets

    shown: list[Any] = []
    closed: list[Any] = []
    monkeypatch.setattr(bars, "_in_notebook", lambda: True)
    monkeypatch.setattr(IPython.display, "display", shown.append)
    monkeypatch.setattr(ipywidgets.IntProgress, "close", lambda self: closed.append(self.value))

    def run() -> None:
        with bars.progress(2000, "pods") as step:
            for _ in range(1500):
                step(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()
    assert [type(w).__name__ for w in shown] == ["IntProgress"]
    assert closed
    assert 1400 <= closed[0] <= 1500


def test_a_lab_with_many_pods_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lab.run steps once an attempt."""
    monkeypatch.setattr(bars, "SHOWN_FROM", 5)
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(bars, "_in_notebook", lambda: False)
    node = {
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "9", "memory": "8Gi", "pods": "20"}},
    }
    lab = Lab([node])
    pods = [
        {
            "kind": "Pod",
            "metadata": {"name": f"p{i}"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        for i in range(8)
    ]
    lab.apply(pods)
    assert len(lab.run()) == 8
    assert "8/8" in stream.getvalue()
