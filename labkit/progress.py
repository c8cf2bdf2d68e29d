"""A progress bar for long runs: rich in a terminal, a widget in a notebook, nothing where nobody looks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Shorter runs are over before a bar says anything. A number of steps, not of seconds: what a notebook shows must
#: not depend on the machine.
SHOWN_FROM = 1000

Step = Callable[[int], None]


@contextmanager
def progress(total: int, text: str) -> Iterator[Step]:
    """Yields `step(n)`, to be called as `n` of `total` things are done. The bar goes away at the end.

    It is drawn on stderr, and only from `SHOWN_FROM` things on.
    """
    if total < SHOWN_FROM:
        yield _nothing
    elif _in_notebook():
        with _widget(total, text) as step:
            yield step
    elif sys.stderr.isatty():
        with _terminal(total, text) as step:
            yield step
    else:
        yield _nothing


def _nothing(n: int) -> None:
    """Nobody looks."""


def _in_notebook() -> bool:
    if "ipykernel" not in sys.modules:
        return False
    from IPython.core.getipython import get_ipython

    return get_ipython() is not None


@contextmanager
def _terminal(total: int, text: str) -> Iterator[Step]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text, total=total)
        yield lambda n: bar.advance(task, n)


@contextmanager
def _widget(total: int, text: str) -> Iterator[Step]:
    import ipywidgets
    from IPython import display as ipython

    bar = ipywidgets.IntProgress(min=0, max=total, description=text, style={"description_width": "initial"})
    show: Callable[[object], object] = ipython.display
    show(bar)
    done = shown = 0

    def step(n: int) -> None:
        nonlocal done, shown
        done += n
        # Each change is a message to the browser: a hundred are enough.
        if done - shown >= total / 100:
            bar.value = shown = done

    try:
        yield step
    finally:
        bar.close()
