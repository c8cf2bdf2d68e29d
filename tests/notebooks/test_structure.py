"""All modules: both languages have the same cells, points and headings, and no link leads nowhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from labkit.course.source import (
    base_id,
    build_language,
    cell_language,
    modules,
    read_notebook,
    source_path,
    source_problems,
)
from markdown_it import MarkdownIt

MODULES = modules()
_LINK = re.compile(
    r"\]\(\s*<([^>]+)>[^)]*\)"  # [text](<target with spaces> "title")
    r"|\]\(\s*([^)\s<]+)[^)]*\)"  # [text](target "title")
    r"|(?:href|src)=[\"']([^\"']+)[\"']"
)
_CJK = re.compile(r"[\u4e00-\u9fff]")
_FENCE = re.compile(r"```.*?```", re.S)


@pytest.fixture(params=MODULES)
def module(request: pytest.FixtureRequest) -> str:
    """Every module there is."""
    return str(request.param)


def source(module: str) -> Any:
    """The module's file with both languages."""
    return read_notebook(source_path(module))


def prose(module: str, language: str) -> dict[str, str]:
    """Cell -> text, without code blocks."""
    cells = source(module).cells
    return {base_id(c): _FENCE.sub("", c.source) for c in cells if cell_language(c) == language}


def links(text: str) -> list[str]:
    """Targets of links and images inside the project, without their fragments."""
    found = ["".join(groups) for groups in _LINK.findall(text)]
    return [unquote(x.partition("#")[0]) for x in found if not re.match(r"[a-z]+:|#|//", x)]


def headings(text: str) -> list[int]:
    """Levels, in order."""
    return [len(x) for x in re.findall(r"^(#{1,6}) ", text, re.M)]


def points(notebook: Any) -> dict[str, float]:
    """Graded cell -> points."""
    marks = [c.metadata.get("nbgrader") or {} for c in notebook.cells]
    return {m["grade_id"]: float(m["points"]) for m in marks if m.get("grade")}


def test_no_module_has_a_problem(module: str) -> None:
    """What `labkit course` would refuse."""
    assert source_problems(source(module), module) == []


def test_languages_have_the_same_cells(module: str) -> None:
    """Ids, kinds, code, points, marks and headings, in the same order."""
    english, chinese = (build_language(source(module), language) for language in ("en", "zh"))
    assert [c.id for c in english.cells] == [c.id for c in chinese.cells]
    assert len({c.id for c in english.cells}) == len(english.cells)
    assert points(english) == points(chinese)
    for one, other in zip(english.cells, chinese.cells, strict=True):
        assert one.cell_type == other.cell_type
        assert one.metadata == other.metadata
        if one.cell_type == "code":
            assert one.source == other.source
        else:
            assert headings(one.source) == headings(other.source), one.id


def test_each_language_is_written_in_it(module: str) -> None:
    """Chinese prose is Chinese; English prose is not; both link to the same places."""
    english, chinese = prose(module, "en"), prose(module, "zh")
    for id, text in english.items():
        assert not _CJK.search(text), id
        assert _CJK.search(chinese[id]), id
        same = [re.sub(r"\.zh(\.\w+)$", r"\1", x) for x in links(chinese[id])]
        assert sorted(same) == sorted(links(text)), id


@pytest.mark.parametrize("language", ["en", "zh"])
def test_links_lead_to_files(module: str, language: str) -> None:
    """Relative to the module's own folder, and not out of the folder that learners get."""
    home = source_path(module).parent
    root = home.parent
    missing = []
    for id, text in prose(module, language).items():
        for link in links(text):
            target = (home / link).resolve()
            if not target.exists() or not target.is_relative_to(root):
                missing.append(f"{id}: {link}")
    assert missing == []


def test_links_are_found_in_every_form() -> None:
    """The test above would see these."""
    text = (
        'See [a](../a/a.ipynb#x), ![b](<img/b c.png> "B"), [web](https://example.org), [here](#here),'
        ' <img src="img/d.svg"> and [e](docs/e%20f.md).'
    )
    assert links(text) == ["../a/a.ipynb", "img/b c.png", "img/d.svg", "docs/e f.md"]


def unread_marks(text: str) -> list[str]:
    """Pieces of a Markdown text in which `**`, a backtick or a link's brackets stay as they were typed."""
    blocks = MarkdownIt("commonmark").enable(["table"]).parse(text)
    pieces = [c.content for b in blocks if b.type == "inline" for c in b.children or [] if c.type == "text"]
    return [p for p in pieces if re.search(r"\*|`|\]\(", p)]


def test_every_mark_in_a_text_is_read_as_one(module: str) -> None:
    """Beside Chinese text `**` only counts with a letter, not with a bracket or a full stop, on its inner side."""
    assert unread_marks("**节点（node）**是一台机器") == ["**节点（node）**是一台机器"]
    texts = [c.source for c in source(module).cells if c.cell_type == "markdown"]
    assert [piece for text in texts for piece in unread_marks(text)] == []


def test_a_module_is_worth_ten_points_in_numbered_parts(module: str) -> None:
    """Exercises add up to 10; the parts count from 1 without a gap; test ids say what they belong to."""
    marks = points(source(module))
    assert sum(marks.values()) == 10
    numbers = [
        int(n) for text in prose(module, "en").values() for n in re.findall(r"^## (\d+) · ", text, re.M)
    ]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 3


def test_modules_lead_to_each_other(module: str) -> None:
    """The last cell links to the next module and, from the second on, to the one before."""
    at = MODULES.index(module)
    wanted = [m for i, m in enumerate(MODULES) if abs(i - at) == 1 and _next_to(m, module)]
    for language in ("en", "zh"):
        last = list(prose(module, language).values())[-1]
        there = {Path(x).stem for x in links(last)}
        assert set(wanted) <= there


def _next_to(one: str, other: str) -> bool:
    """Their numbers follow each other: none is missing in between."""
    return abs(int(one[:2]) - int(other[:2])) == 1
