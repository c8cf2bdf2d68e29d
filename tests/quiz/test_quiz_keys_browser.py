"""Every kind of question in a real browser, answered with keys alone, on a page without JupyterLab around it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from labkit.i18n import language
from labkit.quiz.session import Session
from labkit.widgets.base import LabWidget
from labkit.widgets.quiz import QuizController
from labkit.widgets.style import asset

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><html><head><meta charset="utf-8"><title>quiz</title><style>CSS</style></head>
<body><main id="here"></main><script type="module">
SCRIPT
const drawn = [];
window.model = { get: () => window.shown, model_id: "m", on: (_, f) => drawn.push(f), off: () => 0,
  send: async (m) => { window.shown = await window.tell(m); drawn.forEach((f) => f()); } };
window.shown = await window.tell(null);
window.lab.render({ model: window.model, el: document.getElementById("here") });
</script></body></html>"""
RIGHT = re.compile("✓ (Right|正确)")


class Desk:
    """A quiz on a page, and a learner without a mouse."""

    def __init__(self, page: Any, folder: Path, lang: str, *questions: str) -> None:
        self.page, self.lang = page, lang
        self.session = Session("part1", list(questions), folder=folder)
        with language(lang):
            self.widget = LabWidget(QuizController(self.session))
        page.expose_function("tell", self._tell)
        page.route("**/*", lambda route: route.fulfill(body=self._html(), content_type="text/html"))
        page.goto("http://quiz.test/")
        page.locator(".lk").wait_for()

    def _html(self) -> str:
        script = asset("lab.js").read_text(encoding="utf-8").replace("export default", "window.lab =")
        css = asset("lab.css").read_text(encoding="utf-8")
        return PAGE.replace("CSS", css, 1).replace("SCRIPT", script, 1)

    def _tell(self, message: dict[str, Any] | None) -> dict[str, Any]:
        if message is not None:
            with language(self.lang):
                self.widget._on_message(self.widget, message, [])
        return dict(self.widget.view)

    def at(self, id: str) -> Any:
        """The control with this id."""
        return self.page.locator(f'[data-id="{id}"]')

    def press(self, id: str, key: str = "Enter") -> None:
        """Go to a control, press a key."""
        self.at(id).focus()
        self.page.keyboard.press(key)

    def focused(self) -> Any:
        """The id of what has the focus."""
        return self.page.evaluate("document.activeElement.dataset.id")

    def check(self, question: str, name: str) -> None:
        """Check the answer: it is right. Keeps a picture when LABKIT_SHOTS names a folder."""
        self.press(f"{question}:submit")
        self.page.get_by_text(RIGHT).first.wait_for()
        if os.environ.get("LABKIT_SHOTS"):
            shot = f"{os.environ['LABKIT_SHOTS']}/quiz-{name}-{self.lang}.png"
            self.page.screenshot(path=shot, full_page=True)
        last = self.session.last(question)
        assert last is not None
        assert last.fraction == 1


@pytest.fixture
def page() -> Iterator[Any]:
    """A page of the system's Chromium."""
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium, "install Debian's chromium"
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 800, "height": 900})
        page.set_default_timeout(15_000)
        yield page
        browser.close()


both = pytest.mark.parametrize("lang", ["en", "zh"])


@both
def test_order(page: Any, tmp_path: Path, lang: str) -> None:
    """Items move with their own buttons; the focus goes along, and stays on the item when it is at the top."""
    desk = Desk(page, tmp_path, lang, "26")
    for wanted in ("c", "a", "d", "b"):
        places = page.locator('[data-id^="26:up."]').evaluate_all("b => b.map(x => x.dataset.id)")
        at = places.index(f"26:up.{wanted}")
        desk.at(f"26:up.{wanted}").focus()
        for step in range(at):
            page.keyboard.press("Enter")
            page.wait_for_function(
                "([id, at]) => [...document.querySelectorAll('[data-id^=\"26:up.\"]')][at].dataset.id === id",
                arg=[f"26:up.{wanted}", at - step - 1],
            )
        if at:
            assert desk.focused() == f"26:down.{wanted}"
    desk.check("26", "order")


@both
def test_match(page: Any, tmp_path: Path, lang: str) -> None:
    """Arrow keys choose, however fast they are pressed."""
    desk = Desk(page, tmp_path, lang, "4")
    texts = ("active queue|activeQ", "unschedulable pool", "PreEnqueue", "in no queue|不在任何队列")
    for pair, text in zip(("new", "too-big", "gated", "held"), texts, strict=True):
        select = desk.at(f"4:match.{pair}")
        options = select.locator("option").all_text_contents()
        at = next(i for i, option in enumerate(options) if re.search(text, option))
        select.focus()
        for _ in range(at):
            page.keyboard.press("ArrowDown")
    desk.check("4", "match")


@both
def test_multiple_and_pager(page: Any, tmp_path: Path, lang: str) -> None:
    """Space ticks; on the last page the focus goes to the button that still works."""
    desk = Desk(page, tmp_path, lang, "4", "5")
    desk.press("next")
    desk.at("5:choice.a").wait_for()
    assert desk.focused() == "previous"
    for option in "abf":
        desk.press(f"5:choice.{option}", "Space")
    desk.check("5", "multiple")


@both
def test_yaml(page: Any, tmp_path: Path, lang: str) -> None:
    """The text is edited with keys, and Tab leads out of it."""
    desk = Desk(page, tmp_path, lang, "9")
    code = desk.at("9:text")
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
    assert desk.focused() != "9:text"
    desk.check("9", "yaml")


@both
def test_number(page: Any, tmp_path: Path, lang: str) -> None:
    """A number is typed and checked; other numbers are one key away."""
    from labkit.quiz.evidence import computed_answer
    from labkit.quiz.scenario import instance

    desk = Desk(page, tmp_path, lang, "11")
    question = desk.session.question("11")
    assert question is not None
    answer = computed_answer(instance(question, desk.session.seed("11")))  # type: ignore[arg-type]
    desk.at("11:text").focus()
    page.keyboard.type(f"{answer:g}")
    desk.check("11", "number")
    asked = page.locator(".lk label").first.inner_text()
    for _ in range(3):
        desk.press("11:again")
        page.wait_for_timeout(200)
    assert page.locator(".lk label").first.inner_text() != asked


@both
def test_node(page: Any, tmp_path: Path, lang: str) -> None:
    """Arrow keys go from node to node."""
    desk = Desk(page, tmp_path, lang, "18")
    desk.press("18:choice.lab-worker2", "Space")
    page.keyboard.press("ArrowDown")
    desk.check("18", "node")
