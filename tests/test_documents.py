"""README and docs: links lead somewhere, examples run, commands exist."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from labkit.cli import main

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("clusters/**/*.md"),
        *ROOT.glob("notebooks/*.md"),
    ]
)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
COMMAND = re.compile(r"^ *(?:\$ )?(labkit [^`#|\\\n]+)|`(labkit [^`]+)`", re.MULTILINE)


def name(page: Path) -> str:
    """The page's path in the project."""
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files(page: Path) -> None:
    """No relative link is dead."""
    targets = [t for t in LINK.findall(page.read_text()) if "://" not in t and not t.startswith("mailto:")]
    assert [t for t in targets if not (page.parent / t).exists()] == []


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/*.md")), ids=name)
def test_python_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page's Python blocks, one after the other, as a reader would paste them."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in PYTHON.findall(page.read_text()):
        exec(compile(block, name(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_exist(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every `labkit ...` names a command whose help knows the options given."""
    lines = [a or b for a, b in COMMAND.findall(page.read_text())]
    assert {line: said for line in lines if (said := unknown(line, capsys))} == {}


@pytest.mark.parametrize("page", [p for p in PAGES if p.suffixes == [".zh", ".md"]], ids=name)
def test_both_languages_show_the_same(page: Path) -> None:
    """A Chinese page has its English page's sections, code and tables, line for line."""

    def shape(text: str) -> list[str]:
        blocks = re.findall(r"```python\n.*?```", text, re.DOTALL)
        uncommented = [re.sub(r" +#.*", "", b) for b in blocks]
        marks = [line[:2] for line in text.splitlines() if line.startswith(("#", "|", "- ", "```"))]
        return uncommented + marks

    english = page.with_name(page.name.replace(".zh.md", ".md"))
    assert shape(page.read_text()) == shape(english.read_text())


def unknown(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What in a command line does not exist, or nothing."""
    words = line.replace("...", "").split()[1:]
    path = list(itertools.takewhile(lambda w: re.fullmatch(r"[a-z|-]+", w) and not w.startswith("-"), words))[
        :2
    ]
    given = [w.split("=")[0] for w in words if w.startswith("--")]
    for spelt in itertools.product(*(w.split("|") for w in path)):
        with pytest.raises(SystemExit) as end:
            main([*spelt, "--help"])
        read = capsys.readouterr()
        if end.value.code:
            return f"labkit {' '.join(spelt)}: {read.err}"
        if missing := [g for g in given if g not in read.out and g not in ("--help", "--lang")]:
            return f"labkit {' '.join(spelt)} has no {missing}"
    return ""
