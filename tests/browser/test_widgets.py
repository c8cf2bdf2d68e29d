"""The widget family in JupyterLab, in a real browser: each is drawn, answers its controls, and is labelled."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from labkit.course.source import write_notebook

from tests.browser.conftest import run_all

pytestmark = pytest.mark.browser

SETUP = """from labkit import Lab
from labkit import widgets
lab = Lab("three-zones")
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\\nkind: KubeSchedulerConfiguration\\n"


class ByName:
    name = "ByName"

    def score(self, state, pod, node):
        return 10 * int(node.name[-1])
"""
PREFER = "class Prefer:\\n    def score(self, state, pod, node):\\n        return 100 if node.name == 'c2' else 0\\n"
CELLS = {
    "playground": "widgets.playground(Lab('three-zones'))",
    "queue": "widgets.queue_view(Lab('three-zones'))",
    "filter": "widgets.filter_matrix(lab, 'web-7')",
    "score": "widgets.score_explorer(lab, 'web-7')",
    "domains": "widgets.domains_view(lab, 'web-7')",
    "map": "widgets.cluster_map(lab)",
    "preemption": "widgets.preemption_explorer(Lab('full'), 'urgent-0')",
    "editor": f'widgets.plugin_editor(lab, "{PREFER}")',
    "gang": "from labkit.plugins.course import GangPermit\ngang = Lab('gang')\ngang.plugins.enable(GangPermit)\nwidgets.gang_timeline(gang)",
    "config": "widgets.config_editor(CONFIG, Lab('three-zones'))",
    "extender": "server = lab.extender(ByName())\nwidgets.extender_inspector(server, lab)",
    "resources": "widgets.resources_explorer(lab)",
    "trace": "done = Lab('three-zones')\ndone.run()\nwidgets.trace_explorer(done)",
    "race": "from labkit.several import SeveralSchedulers\nwidgets.scheduler_race(SeveralSchedulers('two-schedulers'))",
}

#: In the page: every control without a name, every picture without a text, every table without headers.
UNNAMED = """() => {
  const found = [];
  const named = (e) => e.getAttribute('aria-label') || e.textContent.trim() || (e.id && document.querySelector(`label[for="${e.id}"]`)) || e.closest('label');
  for (const e of document.querySelectorAll('.lk button, .lk input, .lk select, .lk textarea')) if (!named(e)) found.push(e.outerHTML.slice(0, 120));
  for (const e of document.querySelectorAll('.lk [role=img]')) if (!e.getAttribute('aria-label')) found.push(e.outerHTML.slice(0, 120));
  for (const t of document.querySelectorAll('.lk table')) if (!t.querySelector('th[scope=col]')) found.push('table without headers');
  return found;
}"""
#: Anything in a widget that is wider than the widget.
TOO_WIDE = """() => [...document.querySelectorAll('.lk')].flatMap((w) => [...w.querySelectorAll('*')]
  .filter((e) => e.getBoundingClientRect().right > w.getBoundingClientRect().right + 1 && !e.closest('.lk-track, .lk-lane, .lk-scroll, .lk-table'))
  .slice(0, 2).map((e) => e.outerHTML.slice(0, 120)))"""


def notebook(folder: Path) -> str:
    """A notebook with one widget a cell."""
    from nbformat import v4

    made = v4.new_notebook(cells=[v4.new_code_cell(SETUP), *map(v4.new_code_cell, CELLS.values())])
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    write_notebook(made, folder / "widgets.ipynb")
    return "widgets.ipynb"


def test_widgets_answer_in_the_browser(page: Any, lab_server: tuple[str, Path], language: str) -> None:
    """One control of each, by mouse or keyboard; names for everything; nothing sticks out."""
    url, workspace = lab_server
    run_all(page, url, notebook(workspace))
    page.locator(".lk").nth(len(CELLS) - 1).wait_for(state="attached")
    drawn = dict(zip(CELLS, page.locator(".lk").all(), strict=True))

    def until(widget: str, text: str) -> None:
        drawn[widget].get_by_text(text).first.wait_for(state="attached")

    def press(widget: str, id: str) -> None:
        drawn[widget].locator(f'button[data-id="{id}"]').click()

    _playground(drawn["playground"], press, until, page)
    press("queue", "run")
    until("queue", "lab.example/quota")
    drawn["filter"].locator('input[data-id="on.NodeUnschedulable"]').uncheck()
    until("filter", "node(s) had untolerated taint(s)")
    drawn["score"].locator('input[data-id="weight.PodTopologySpread.on"]').uncheck()
    until("score", "web-7 → a2")
    drawn["domains"].locator('select[data-id="when"]').select_option("DoNotSchedule")
    until("domains", "3 > 1")
    drawn["preemption"].locator('input[data-id="priority"]').fill("-10")
    until("preemption", "6 No preemption victims found")
    code = drawn["editor"].locator("textarea")
    code.fill("class Broken:\n    def score(self")
    press("editor", "apply")
    drawn["editor"].locator(".lk-notice.lk-fail").wait_for()
    _timeline(drawn["gang"], press, until, page, language)
    _configuration(drawn["config"], until, page, language)
    drawn["extender"].locator('input[data-id="down"]').focus()
    page.keyboard.press("Space")
    until("extender", "connection refused")
    drawn["resources"].locator('input[data-id="cpu"]').focus()
    page.keyboard.press("End")
    drawn["resources"].locator(".lk-verdict.lk-fail").wait_for()
    drawn["trace"].locator('button[data-id="back"]').focus()
    page.keyboard.press("Enter")
    until("trace", "web-8 → a2")
    press("race", "run")
    until("race", "Nobody serves batch-scheduler" if language == "en" else "没有调度器负责 batch-scheduler")
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(TOO_WIDE) == []
    _shots(page, language)
    # Beside another document, and on a phone: tables may scroll by themselves, nothing else may stick out.
    page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    for width in (880, 520):
        page.set_viewport_size({"width": width, "height": 1100})
        page.wait_for_function(
            "w => [...document.querySelectorAll('.lk')].every(e => e.clientWidth < w)", arg=width
        )
        assert page.evaluate(TOO_WIDE) == [], width


def _playground(widget: Any, press: Callable[..., None], until: Callable[..., None], page: Any) -> None:
    press("playground", "step")
    until("playground", "web-7 → b2")
    # The keyboard alone: Enter on the focused button is the next step.
    widget.locator('button[data-id="step"]').focus()
    page.keyboard.press("Enter")
    until("playground", "web-8 → a2")
    press("playground", "back")
    until("playground", "web-7 → b2")


def _timeline(
    widget: Any, press: Callable[..., None], until: Callable[..., None], page: Any, language: str
) -> None:
    """Who waits, a member less by keyboard, and what became of the others when time has passed."""
    english = language == "en"
    press("gang", "run")
    until(
        "gang",
        "train: 3 of 4 have booked a node and wait."
        if english
        else "train：4 个中有 3 个已预订节点，正在等待。",
    )
    assert widget.locator(".lk-lane i.lk-wait").count() == 3
    widget.locator('button[data-id="advance.60"]').focus()
    page.keyboard.press("Enter")
    until("gang", "timed out" if english else "超时")
    assert widget.locator("[role=img]").get_attribute("aria-label")
    press("gang", "reset")
    until("gang", "train: nobody holds a node." if english else "train：没有成员占着节点。")


def _configuration(widget: Any, until: Callable[..., None], page: Any, language: str) -> None:
    """Typed text is judged while it is typed, in kube-scheduler's words; Tab leads out."""
    until(
        "config", "kube-scheduler accepts this file." if language == "en" else "kube-scheduler 接受这个文件。"
    )
    widget.locator("textarea").focus()
    page.keyboard.press("Control+End")
    page.keyboard.type("parallelism: 0\n")
    widget.locator(".lk-notice.lk-fail").wait_for()
    until("config", "parallelism: Invalid value: 0")
    page.keyboard.press("Tab")
    page.wait_for_function("() => document.activeElement.tagName !== 'TEXTAREA'")


def _shots(page: Any, language: str) -> None:
    folder = os.environ.get("LABKIT_SCREENSHOTS")
    if folder:
        for name, widget in zip(CELLS, page.locator(".lk").all(), strict=True):
            widget.screenshot(path=f"{folder}/{name}-{language}.png")
