"""Every kind of question in JupyterLab, answered with the keyboard alone, saved, and found again after reopening.

Nothing here waits for time to pass: each step waits for what it leads to.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from labkit.course.source import write_notebook

from tests.browser.conftest import run_all

pytestmark = pytest.mark.browser

NAME = "42-quiz"
CELLS = ('from labkit.widgets.quiz import quiz\nquiz("part3", 8)', 'quiz("part1", 26, 4, 5, 9, 11, 18)')
RIGHT, WRONG = re.compile("✓ (Right|正确)"), re.compile("✕ (Not right|不正确)")
FOCUS = "id => document.activeElement?.dataset.id === id"


def open_quiz(page: Any, server: tuple[str, Path]) -> tuple[Any, Any]:
    """The two widgets of a notebook that has run."""
    from nbformat import v4

    url, workspace = server
    file = workspace / NAME / f"{NAME}.ipynb"
    if not file.exists():
        made = v4.new_notebook(cells=[v4.new_code_cell(text) for text in CELLS])
        made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        write_notebook(made, file)
    run_all(page, url, f"{NAME}/{NAME}.ipynb")
    widgets = page.locator(".lk")
    widgets.nth(1).wait_for()
    return widgets.nth(0), widgets.nth(1)


class Keys:
    """A learner without a mouse, at one widget."""

    def __init__(self, page: Any, widget: Any) -> None:
        self.page, self.widget = page, widget

    def at(self, id: str) -> Any:
        """The control with this id, when it is there."""
        control = self.widget.locator(f'[data-id="{id}"]')
        control.wait_for()
        return control

    def press(self, id: str, key: str = "Enter") -> None:
        """Go to a control, press a key."""
        self.at(id).focus()
        self.page.wait_for_function(FOCUS, arg=id)
        self.page.keyboard.press(key)

    def focused(self, id: str) -> None:
        """The focus comes to this control."""
        self.page.wait_for_function(FOCUS, arg=id)

    def check(self, question: str, verdict: re.Pattern[str] = RIGHT) -> None:
        """Check the answer; wait for the verdict."""
        self.press(f"{question}:submit")
        self.widget.get_by_text(verdict).first.wait_for()


def test_answer_prove_reopen(page: Any, lab_server: tuple[str, Path]) -> None:
    """Space chooses, Enter checks, the reason and the proof appear; after reopening the answer is still there."""
    _, workspace = lab_server
    widget, _ = open_quiz(page, lab_server)
    keys = Keys(page, widget)
    keys.press("8:choice.a", "Space")
    keys.check("8", WRONG)
    keys.press("8:choice.c", "Space")
    keys.check("8")
    keys.press("8:proof")
    widget.get_by_text(re.compile("What the engine decided|引擎的决定")).first.wait_for()
    assert '"response": "c"' in (workspace / NAME / "answers" / "part3.json").read_text()
    widget, _ = open_quiz(page, lab_server)
    widget.get_by_text(RIGHT).first.wait_for()
    assert widget.get_by_role("radio").nth(2).is_checked()


def test_every_kind_by_keyboard(page: Any, lab_server: tuple[str, Path]) -> None:
    """Order, match, multiple, YAML, number and node; each answer is stored."""
    _, workspace = lab_server
    _, widget = open_quiz(page, lab_server)
    keys = Keys(page, widget)
    _order(page, keys)
    keys.check("26")
    keys.press("next")
    _match(page, keys)
    keys.check("4")
    keys.press("next")
    for option in "abf":
        keys.press(f"5:choice.{option}", "Space")
    keys.check("5")
    keys.press("next")
    _yaml(page, keys)
    keys.check("9")
    keys.press("next")
    keys.at("11:text").focus()
    page.keyboard.type("7")
    keys.check("11", re.compile("✕"))
    keys.press("next")
    # On the last page "next" is switched off: the focus goes to the button that still works.
    keys.focused("previous")
    # Arrow keys go from node to node.
    keys.press("18:choice.lab-worker2", "Space")
    page.keyboard.press("ArrowDown")
    keys.check("18")
    stored = json.loads((workspace / NAME / "answers" / "part1.json").read_text())
    assert json.dumps(stored).count('"response"') >= 6


def _order(page: Any, keys: Keys) -> None:
    """Each item is moved to the top by its own button, the last one first; the focus goes along with it."""
    keys.at("26:up.c")
    for wanted in ("c", "a", "d", "b"):
        places = keys.widget.locator('[data-id^="26:up."]').evaluate_all("b => b.map(x => x.dataset.id)")
        at = places.index(f"26:up.{wanted}")
        for step in range(at):
            keys.press(f"26:up.{wanted}")
            page.wait_for_function(
                "([id, at]) => [...document.querySelectorAll('[data-id^=\"26:up.\"]')][at]?.dataset.id === id",
                arg=[f"26:up.{wanted}", at - step - 1],
            )
        if at:
            # At the top "up" is switched off: the focus is on the item's other button.
            keys.focused(f"26:down.{wanted}")


def _match(page: Any, keys: Keys) -> None:
    """Arrow keys choose, however fast they are pressed."""
    texts = ("active queue|activeQ", "unschedulable pool", "PreEnqueue", "in no queue|不在任何队列")
    for pair, text in zip(("new", "too-big", "gated", "held"), texts, strict=True):
        select = keys.at(f"4:match.{pair}")
        options = select.locator("option").all_text_contents()
        assert options[0] in ("choose", "请选择")
        assert select.input_value() == ""
        at = next(i for i, option in enumerate(options) if re.search(text, option))
        wanted = select.locator("option").nth(at).get_attribute("value")
        select.focus()
        for _ in range(at):
            page.keyboard.press("ArrowDown")
        page.wait_for_function(
            '([id, value]) => document.querySelector(`[data-id="${id}"]`).value === value',
            arg=[f"4:match.{pair}", wanted],
        )


def _yaml(page: Any, keys: Keys) -> None:
    """The text is edited with keys, and Tab leads out of it."""
    code = keys.at("9:text")
    start = code.input_value()
    code.focus()
    page.keyboard.press("Control+Home")
    for _ in range(start[: start.index("value: gpu")].count("\n")):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    for _ in "gpu":
        page.keyboard.press("Backspace")
    page.keyboard.type("ml")
    page.keyboard.press("Tab")
    page.wait_for_function("id => document.activeElement?.dataset.id !== id", arg="9:text")
