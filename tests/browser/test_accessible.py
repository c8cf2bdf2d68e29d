"""axe-core on every widget of the family: both languages, light and dark, narrow and wide pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from labkit import Lab, widgets
from labkit.i18n import set_language
from labkit.widgets.style import asset

pytestmark = pytest.mark.browser

PLUGIN = (
    "class Prefer:\n    def score(self, state, pod, node):\n        return 100 if node.name == 'c2' else 0\n"
)
BAD_PLUGIN = "class Prefer:\n    def score(self, state, pod, node):\n        return 1 / 0\n"
PAGE = """<!doctype html><html lang="{lang}"><meta charset="utf-8"><title>widgets</title>
<style>{css} body{{margin:8px;background:{background};color:{color};--jp-layout-color1:{background}}}</style>
<body data-jp-theme-light="{light}"><main><h1>widgets</h1><h2>all</h2><div id="all"></div></main>
<script type="module">{js}
const all = document.getElementById("all");
for (const [i, view] of {views}.entries()) {{
  const el = all.appendChild(document.createElement("section"));
  family.render({{ model: {{ model_id: "w" + i, get: () => view, on() {{}}, off() {{}}, send() {{}} }}, el }});
}}
for (const fold of document.querySelectorAll("details")) fold.open = true;
document.body.dataset.ready = "yes";
</script></body></html>"""


def family() -> list[Any]:
    """One of each, in states that show every kind of block."""
    stepped = Lab("three-zones")
    playground = widgets.playground(stepped)
    playground.set("step")
    playground.set("weight.ImageLocality.on", False)
    queue = widgets.queue_view(Lab("three-zones"))
    queue.set("run")
    queue.set("advance.1")
    still = Lab("three-zones")
    matrix = widgets.filter_matrix(still, "web-7")
    matrix.set("on.TaintToleration", False)
    return [
        playground,
        queue,
        matrix,
        widgets.filter_matrix(still, "big-0"),
        widgets.score_explorer(still, "web-7"),
        widgets.cluster_map(still),
        widgets.cluster_map(Lab("nodes-100")),
        widgets.plugin_editor(still, PLUGIN),
        widgets.plugin_editor(still, BAD_PLUGIN),
        widgets.plugin_editor(still, "class Prefer:\n    def score(self\n"),
        widgets.resources_explorer(still),
        widgets.trace_explorer(stepped),
    ]


@pytest.fixture
def chinese_or_english(request: pytest.FixtureRequest) -> Iterator[str]:
    """The language of what is shown."""
    set_language(request.param)
    yield request.param
    set_language(None)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("chinese_or_english", ["en", "zh"], indirect=True)
def test_axe_finds_nothing(page: Any, tmp_path: Path, chinese_or_english: str, theme: str) -> None:
    """WCAG 2.2 AA rules and axe's best practices, contrast included; nothing wider than the page."""
    file = tmp_path / "widgets.html"
    file.write_text(
        PAGE.format(
            lang="zh-CN" if chinese_or_english == "zh" else "en",
            css=asset("lab.css"),
            js=asset("lab.js").replace("export default", "const family ="),
            views=json.dumps([w.view for w in family()], ensure_ascii=False).replace("</", "<\\/"),
            light=str(theme == "light").lower(),
            color="#111111" if theme == "light" else "#eeeeee",
            background="#ffffff" if theme == "light" else "#111111",
        ),
        encoding="utf-8",
    )
    problems: list[str] = []
    page.on("pageerror", lambda e: problems.append(str(e)))
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    for width in (1100, 760):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(file.as_uri())
        page.wait_for_selector("body[data-ready]")
        if page.evaluate("document.documentElement.scrollWidth") > width:
            problems.append(f"{width} px: the page scrolls sideways")
        if width != 1100:
            continue
        page.evaluate(axe)
        found = page.evaluate(
            "() => axe.run(document, {resultTypes: ['violations'],"
            " runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})"
        )
        problems += [
            f"{width} px, {v['id']} ({v['help']}): {node['html'][:200]}"
            for v in found["violations"]
            for node in v["nodes"][:4]
        ]
    assert not problems, "\n".join(problems)
