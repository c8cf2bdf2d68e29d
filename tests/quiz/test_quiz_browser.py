"""A question in JupyterLab, in a real browser: answered with the keyboard, saved, found again after reopening."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from labkit.course.jupyter import jupyter_command
from labkit.course.source import write_notebook
from labkit.course.text import from_text
from labkit.course.workspace import build_workspace

pytestmark = pytest.mark.browser

TEXT = """%% prose title
# Quiz

%% zh
# 测验

%% code ask
from labkit.widgets.quiz import quiz
quiz("part3", 8)

%% code kinds
quiz("part1", 26, 4, 5, 9, 11, 18)
"""
NAME = "42-quiz"


@pytest.fixture
def lab_url(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[str, Path]]:
    """JupyterLab on a workspace with one question, started as `labkit lab` starts it."""
    lang = request.param
    write_notebook(from_text(TEXT), tmp_path / "notebooks" / NAME / f"{NAME}.ipynb")
    workspace = tmp_path / "workspace"
    build_workspace(workspace, lang, root=tmp_path / "notebooks")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    command, environment = jupyter_command(workspace, browser=False, port=port, language=lang)
    with (tmp_path / "jupyter.log").open("w") as log:
        server = subprocess.Popen(
            [*command, "--IdentityProvider.token="], env=environment, stdout=log, stderr=log
        )
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{url}/api", timeout=1).read()
                break
            except OSError:
                assert time.monotonic() < deadline, (tmp_path / "jupyter.log").read_text()
                time.sleep(0.2)
        yield url, workspace
    finally:
        server.terminate()
        server.wait(20)


@pytest.fixture
def page() -> Iterator[Any]:
    """A page of the system's Chromium."""
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium, "install Debian's chromium"
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 1000})
        page.set_default_timeout(60_000)
        yield page
        browser.close()


def open_and_run(page: Any, url: str) -> None:
    """Open the notebook and run all its cells."""
    page.goto(f"{url}/lab/tree/{NAME}/{NAME}.ipynb?reset")
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
    page.locator(
        "[data-jp-kernel-status=idle], .jp-Notebook-ExecutionIndicator[data-status=idle]"
    ).first.wait_for()
    for _ in range(6):
        # A key that is pressed while the kernel still starts may be lost.
        page.locator(".jp-CodeCell .jp-InputArea-editor").first.click()
        page.keyboard.press("Shift+Enter")
        try:
            page.locator(".lk").wait_for(timeout=10_000)
            return
        except Exception:
            continue
    page.locator(".lk").wait_for()


def run_next(page: Any) -> Any:
    """Run the second cell; its widget."""
    page.locator(".jp-CodeCell .jp-InputArea-editor").nth(1).click()
    for _ in range(6):
        page.keyboard.press("Shift+Enter")
        try:
            page.locator(".lk").nth(1).wait_for(timeout=10_000)
            break
        except Exception:
            page.locator(".jp-CodeCell .jp-InputArea-editor").nth(1).click()
    return page.locator(".lk").nth(1)


def picture(page: Any, name: str) -> None:
    """Keep a screenshot when LABKIT_SHOTS names a folder."""
    if os.environ.get("LABKIT_SHOTS"):
        page.screenshot(path=f"{os.environ['LABKIT_SHOTS']}/{name}.png")


@pytest.mark.parametrize("lab_url", ["en", "zh"], indirect=True)
def test_answer_prove_reopen(lab_url: tuple[str, Path], page: Any) -> None:
    """Space chooses, Enter checks, the reason and the proof appear; after a reload the answer is still there."""
    url, workspace = lab_url
    open_and_run(page, url)
    widget = page.locator(".lk")
    widget.get_by_role("radio").nth(0).focus()
    page.keyboard.press("Space")
    widget.locator('[data-id="8:submit"]').focus()
    page.keyboard.press("Enter")
    widget.get_by_text(re.compile("Not right|不正确")).first.wait_for()
    widget.get_by_role("radio").nth(2).check()
    widget.locator('[data-id="8:submit"]').click()
    widget.get_by_text(re.compile("✓ (Right|正确)")).first.wait_for()
    widget.locator('[data-id="8:proof"]').click()
    widget.get_by_text(re.compile("What the engine decided|引擎的决定")).first.wait_for()
    picture(page, f"quiz-{workspace.name}-{page.locator('.lk').get_attribute('lang')}")
    assert '"response": "c"' in (workspace / NAME / "answers" / "part3.json").read_text()
    open_and_run(page, url)
    page.locator(".lk").get_by_text(re.compile("✓ (Right|正确)")).first.wait_for()
    assert page.locator(".lk").get_by_role("radio").nth(2).is_checked()


@pytest.mark.parametrize("lab_url", ["en", "zh"], indirect=True)
def test_every_kind_by_keyboard(lab_url: tuple[str, Path], page: Any) -> None:
    """Order, match, multiple, YAML, number and node are answered with keys alone; each answer is stored."""
    url, workspace = lab_url
    open_and_run(page, url)
    widget = run_next(page)
    lang = widget.get_attribute("lang")
    right = re.compile("✓ (Right|正确)")

    def press(id: str, key: str = "Enter") -> None:
        control = widget.locator(f'[data-id="{id}"]')
        control.focus()
        page.keyboard.press(key)

    def checked(question: str, name: str) -> None:
        press(f"{question}:submit")
        widget.get_by_text(right).first.wait_for()
        widget.scroll_into_view_if_needed()
        picture(page, f"quiz-{name}-{lang}")

    # Each item is moved to the top by its own button, the last one first; the focus goes along with it.
    for wanted in ("c", "a", "d", "b"):
        places = widget.locator('[data-id^="26:up."]')
        at = places.evaluate_all("b => b.map(x => x.dataset.id)").index(f"26:up.{wanted}")
        widget.locator(f'[data-id="26:up.{wanted}"]').focus()
        for step in range(at):
            page.keyboard.press("Enter")
            page.wait_for_function(
                "([id, at]) => [...document.querySelectorAll('[data-id^=\"26:up.\"]')]"
                ".findIndex(x => x.dataset.id === id) === at",
                arg=[f"26:up.{wanted}", at - step - 1],
            )
        if at:
            # At the top "up" is switched off: the focus is on the item's other button.
            assert page.evaluate("document.activeElement.dataset.id") == f"26:down.{wanted}"
    checked("26", "order")
    press("next")
    for pair, text in (
        ("new", "active queue|activeQ"),
        ("too-big", "unschedulable pool"),
        ("gated", "PreEnqueue"),
        ("held", "in no queue|不在任何队列"),
    ):
        select = widget.locator(f'[data-id="4:match.{pair}"]')
        options = select.locator("option").all_text_contents()
        at = next(i for i, option in enumerate(options) if re.search(text, option))
        select.focus()
        for _ in range(at):
            page.keyboard.press("ArrowDown")
        page.wait_for_timeout(300)
    checked("4", "match")
    press("next")
    boxes = widget.get_by_role("checkbox")
    for index in (0, 1, 5):
        boxes.nth(index).focus()
        page.keyboard.press("Space")
    checked("5", "multiple")
    press("next")
    code = widget.locator('[data-id="9:text"]')
    code.focus()
    page.keyboard.press("Control+Home")
    for _ in range(code.input_value()[: code.input_value().index("value: gpu")].count("\n")):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    for _ in "gpu":
        page.keyboard.press("Backspace")
    page.keyboard.type("ml")
    # Tab must lead out of the text: a keyboard user may not be caught in it.
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.id") != "9:text"
    checked("9", "yaml")
    press("next")
    entry = widget.locator('[data-id="11:text"]')
    entry.focus()
    page.keyboard.type("7")
    press("11:submit")
    widget.get_by_text(re.compile("✕")).first.wait_for()
    picture(page, f"quiz-number-{lang}")
    press("next")
    radios = widget.get_by_role("radio")
    radios.nth(radios.count() - 1).focus()
    page.keyboard.press("Space")
    checked("18", "node")
    stored = json.loads((workspace / NAME / "answers" / "part1.json").read_text())
    assert json.dumps(stored).count('"response"') >= 6
