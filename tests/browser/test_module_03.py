"""Module 03 in JupyterLab, in a real browser, in both languages."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import run_all, save

pytestmark = pytest.mark.browser

RIGHT = re.compile("✓ (Right|正确)")
NOTEBOOK = "03-resources/03-resources.ipynb"


def test_slider_quiz_save_and_reopen(page: Any, lab_server: tuple[str, Path], language: str) -> None:
    """Moving a slider changes the winning node; a quiz answer survives save and reopen."""
    url, _ = lab_server
    run_all(page, url, NOTEBOOK)
    explorer = page.locator(".lk").filter(has=page.locator('input[data-id="cpu"]'))
    explorer.scroll_into_view_if_needed()
    assert "pod → mem" in (explorer.locator(".lk-verdict").text_content() or "")
    _shot(page, f"module-03-{language}")

    cpu = explorer.locator('input[type=range][data-id="cpu"]')
    cpu.fill("4500")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.lk-verdict')].some(v => /pod/.test(v.textContent) && !/mem/.test(v.textContent))"
    )
    assert explorer.locator(".lk-tag.lk-fail").count() == 3
    cpu.focus()
    page.keyboard.press("Home")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.lk-verdict')].some(v => /pod → /.test(v.textContent))"
    )

    question = page.locator(".lk").filter(has=page.get_by_role("radio"))
    question.scroll_into_view_if_needed()
    question.get_by_role("radio").nth(2).check()
    question.locator('[data-id="8:submit"]').click()
    question.get_by_text(RIGHT).first.wait_for()
    _shot(page, f"module-03-quiz-{language}")
    save(page)

    run_all(page, url, NOTEBOOK)
    question.scroll_into_view_if_needed()
    question.get_by_text(RIGHT).first.wait_for()
    assert question.get_by_role("radio").nth(2).is_checked()


def _shot(page: Any, name: str) -> None:
    folder = os.environ.get("LABKIT_SCREENSHOTS")
    if folder:
        for i, widget in enumerate(page.locator(".lk").all()):
            widget.screenshot(path=f"{folder}/{name}-{i}.png")
        page.screenshot(path=f"{folder}/{name}.png")
