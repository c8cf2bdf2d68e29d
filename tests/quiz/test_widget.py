"""The quiz widget's controller, driven as the page drives it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from labkit.i18n import language
from labkit.quiz.session import Session
from labkit.widgets.quiz import QuizController

from tests.quiz.banks import bank, cpu_runner


def controller(folder: Path, *ids: str) -> QuizController:
    """A fresh widget on the bank of all kinds, as after a restart."""
    return QuizController(Session(bank(folder), list(ids) or None, folder=folder, runner=cpu_runner))


def find(blocks: Any, type_: str) -> list[dict[str, Any]]:
    """All blocks of a type, at any depth."""
    if isinstance(blocks, list):
        return [b for x in blocks for b in find(x, type_)]
    if not isinstance(blocks, dict):
        return []
    own = [blocks] if blocks.get("type") == type_ or blocks.get("kind") == type_ else []
    return own + [b for x in blocks.values() for b in find(x, type_)]


def verdict(widget: QuizController) -> str:
    """The verdict in words."""
    return str(find(widget.view(), "verdict")[0]["text"])


def test_answer_check_reopen(tmp_path: Path) -> None:
    """Choose, check, see why; a new widget shows the same answer and mark."""
    widget = controller(tmp_path, "one")
    assert verdict(widget) == "Not answered yet."
    widget.handle("one:choice", "b")
    widget.handle("one:submit", None)
    assert verdict(widget) == "✕ Not right"
    again = controller(tmp_path, "one")
    assert find(again.view(), "choice")[0]["value"] == "b"
    cells = [r["cells"] for r in find(again.view(), "table")[0]["rows"]]
    assert [c[1]["text"] for c in cells] == ["right, not chosen", "chosen, wrong"]
    again.handle("one:choice", "a")
    assert verdict(again) == "Changed, not checked."
    assert not find(again.view(), "table")
    again.handle("one:submit", None)
    assert verdict(again) == "✓ Right"
    assert again.summary() == "All kinds: question one 100%"


def test_every_kind_can_be_answered(tmp_path: Path) -> None:
    """The messages that the page sends for each kind lead to full marks."""
    widget = controller(tmp_path)
    from labkit.quiz.present import right_id

    match = bank(tmp_path).question("match")
    fix = bank(tmp_path).question("fix")
    order = [c.id for c in widget.session.shown("order").choices]
    for wanted in ("b", "s", "f"):
        for _ in order:
            widget.handle(f"order:up.{wanted}", None)
    number = widget.session.question("number")
    from labkit.quiz.scenario import draw

    drawn = draw(number, widget.session.seed("number"))  # type: ignore[arg-type]
    for id, value in (
        ("one:choice", "a"),
        ("many:choice", ["a", "b"]),
        ("number:text", str(drawn["total"] - drawn["used"])),
        ("match:match.x", right_id("x", match)),
        ("match:match.y", right_id("y", match)),
        ("fix:text", fix.solution),  # type: ignore[union-attr]
        ("where:choice", "n2"),
    ):
        widget.handle(f"{id}", value)
    for question in widget.session.ids:
        widget.handle(f"{question}:submit", None)
        last = widget.session.last(question)
        assert last is not None, question
        assert last.fraction == 1, question


def test_the_proof_is_run_on_request(tmp_path: Path) -> None:
    """The button appears after an answer; it shows the claim and what the code says, and hides again."""
    widget = controller(tmp_path, "one")
    widget.handle("one:choice", "a")
    widget.handle("one:submit", None)
    widget.handle("one:proof", None)
    shown = json.dumps(widget.view())
    assert "codes" in shown
    assert "UnschedulableAndUnresolvable" in shown
    widget.handle("one:proof", None)
    assert "UnschedulableAndUnresolvable" not in json.dumps(widget.view())


def test_submitting_nothing_and_unwritable_answers_are_notices(tmp_path: Path) -> None:
    """Neither ends the widget."""
    widget = controller(tmp_path, "one")
    widget.handle("one:submit", None)
    assert "Choose or write" in find(widget.view(), "notice")[0]["text"]
    (tmp_path / "answers").write_text("a file")
    widget = controller(tmp_path, "one")
    widget.handle("one:choice", "a")
    widget.handle("one:submit", None)
    assert "not saved" in find(widget.view(), "notice")[0]["text"]


def test_a_damaged_or_unreadable_answers_file_is_told(tmp_path: Path) -> None:
    """Damaged: the answer is stored, and where the old file went is said. Unreadable: a message, not an error."""
    path = tmp_path / "answers" / "kinds.json"
    path.parent.mkdir()
    path.write_text("{")
    widget = controller(tmp_path, "one")
    widget.handle("one:choice", "a")
    widget.handle("one:submit", None)
    assert "kinds.damaged-1.json" in find(widget.view(), "notice")[0]["text"]
    assert "Right" in verdict(widget)
    path.unlink()
    path.mkdir()
    widget = controller(tmp_path, "one")
    assert "cannot be read" in find(widget.view(), "notice")[0]["text"]
    assert "cannot be read" in widget.summary()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_controls_have_names_in_both_languages(tmp_path: Path, lang: str) -> None:
    """Every button and field has a text or a label, and nothing is left in the other language."""
    with language(lang):
        widget = controller(tmp_path, "order", "many", "match", "fix")
        for _ in widget.session.ids:
            for button in find(widget.view(), "button"):
                assert button["text"] or button["label"]
                if button["text"] in "↑↓":
                    assert any(word in button["label"] for word in ("Move", "移"))
            assert (verdict(widget) == "Not answered yet.") == (lang == "en")
            widget.handle("next", None)


def test_messages_for_unknown_controls_change_nothing(tmp_path: Path) -> None:
    """A stale page cannot break the widget."""
    widget = controller(tmp_path, "one")
    before = widget.view()
    for id in ("other:choice", "one:nothing", "", "one"):
        widget.handle(id, "x")
    assert widget.view() == before
