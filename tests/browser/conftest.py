"""JupyterLab as `labkit lab` starts it, and a page of the system's Chromium."""

from __future__ import annotations

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
from labkit.course.workspace import build_workspace


@pytest.fixture(scope="session", params=["en", "zh"])
def language(request: pytest.FixtureRequest) -> str:
    """The learner's language. All tests in one language share a JupyterLab."""
    found: str = request.param
    return found


@pytest.fixture(scope="session")
def lab_server(tmp_path_factory: pytest.TempPathFactory, language: str) -> Iterator[tuple[str, Path]]:
    """(url, workspace) of a running JupyterLab, with settings of its own."""
    tmp_path = tmp_path_factory.mktemp(f"lab-{language}")
    workspace = tmp_path / "workspace"
    build_workspace(workspace, language)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    command, environment = jupyter_command(workspace, browser=False, port=port, language=language)
    environment["JUPYTERLAB_SETTINGS_DIR"] = str(tmp_path / "settings")
    extra = ["--IdentityProvider.token=", "--LabApp.expose_app_in_browser=True"]
    with (tmp_path / "jupyter.log").open("w") as log:
        server = subprocess.Popen([*command, *extra], env=environment, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 90
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
        server.wait(30)


@pytest.fixture
def page() -> Iterator[Any]:
    """A page; the test fails when the page asks anything of the network but this machine."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium, "install Debian's chromium"
    outside: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-background-networking"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 1100})
        page.set_default_timeout(60_000)
        page.on(
            "request",
            lambda r: (
                outside.append(r.url) if r.url.startswith("http") and "//127.0.0.1" not in r.url else None
            ),
        )
        yield page
        browser.close()
    assert not outside, f"asked the network: {outside[:3]}"


def run_all(page: Any, url: str, notebook: str) -> None:
    """Open a notebook and run every cell; returns when the kernel is idle again."""
    page.goto(f"{url}/lab/tree/{notebook}?reset")
    page.wait_for_function(
        "window.jupyterapp && window.jupyterapp.shell.currentWidget?.sessionContext?.isReady"
    )
    # JupyterLab takes cells that are out of sight out of the page; tests look at all of them.
    page.evaluate(
        "() => { const n = window.jupyterapp.shell.currentWidget.content;"
        " n.notebookConfig = {...n.notebookConfig, windowingMode: 'none'}; }"
    )
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_function(
        "() => { const s = window.jupyterapp.shell.currentWidget.sessionContext.session;"
        " return s && s.kernel && s.kernel.status === 'idle' &&"
        " ![...document.querySelectorAll('.jp-InputPrompt')].some(p => p.textContent.includes('[*]')); }",
        timeout=120_000,
    )


def save(page: Any) -> None:
    """Save the open notebook."""
    page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
