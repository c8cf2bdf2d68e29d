"""A question in JupyterLab, in a real browser: answered with the keyboard, saved, found again after reopening."""

from __future__ import annotations

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
