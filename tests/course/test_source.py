"""One source notebook, two languages: the same cells, ids and points; text in, the same text out."""

from __future__ import annotations

import pytest
from labkit.course.source import base_id, build_language, notebook_text, source_problems
from labkit.course.strip import CODE_STUB, strip
from labkit.course.text import from_text, to_text
from labkit.errors import InputError

from tests.course import sample


def test_text_makes_a_notebook_and_comes_back() -> None:
    """to_text is the inverse of from_text."""
    text = to_text(sample.notebook())
    assert text.split() == sample.TEXT.split()
    assert to_text(from_text(text)) == text


def test_both_languages_have_the_same_cells_and_their_own_prose() -> None:
    """Ids, graded metadata and code are equal byte for byte; prose is not."""
    en, zh = (build_language(sample.notebook(), lang) for lang in ("en", "zh"))
    assert [c["id"] for c in en.cells] == [c["id"] for c in zh.cells]
    for a, b in zip(en.cells, zh.cells, strict=True):
        assert a.metadata == b.metadata
        assert (a.source == b.source) == (a["id"] not in ("title", "end"))
    assert zh.cells[0].source.startswith("# 示例")
    assert "lang-" not in notebook_text(en)


def test_building_is_deterministic_and_leaves_the_source_alone() -> None:
    """Two builds of the same notebook are the same bytes; the source keeps both languages."""
    source = sample.notebook()
    before = notebook_text(source)
    assert notebook_text(build_language(source, "zh")) == notebook_text(build_language(source, "zh"))
    assert notebook_text(source) == before


def test_recorded_outputs_follow_the_language() -> None:
    """English outputs are the cell's own, Chinese ones come from the metadata; a learner's copy has none."""
    source = sample.notebook()
    code = next(c for c in source.cells if c["id"] == "setup")
    code.outputs = [{"output_type": "stream", "name": "stdout", "text": "hello\n"}]
    code.metadata["outputs-zh"] = [{"output_type": "stream", "name": "stdout", "text": "你好\n"}]
    texts = {
        lang: [
            c.outputs[0]["text"] for c in build_language(source, lang, outputs=True).cells if c.get("outputs")
        ]
        for lang in ("en", "zh")
    }
    assert texts == {"en": ["hello\n"], "zh": ["你好\n"]}
    assert not any(c.get("outputs") for c in build_language(source, "zh").cells)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("%% prose a\n# A\n", "cells differ between languages: a"),
        ("%% prose a\n# A\n%% zh\n## 甲\n", "cell a: headings differ"),
        ("%% code a\n1\n", "must begin with a level-1 heading"),
        ("%% prose a\n# A\n%% zh\n# 甲\n%% code x\n1\n%% code x\n2\n", "cell ids used twice: x"),
        ("%% prose a\n# A\n%% zh\n# 甲\n%% solution x\ny = 1\n", "needs ### BEGIN SOLUTION"),
    ],
)
def test_a_faulty_source_is_told(text: str, problem: str) -> None:
    """Each fault gives one line that names the module and the cell."""
    found = source_problems(from_text(text), "07-x")
    assert any(problem in line and line.startswith("07-x: ") for line in found), found


def test_the_sample_has_no_problems() -> None:
    """A sound source gives no line."""
    assert source_problems(sample.notebook(), sample.NAME) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "line 1: text before"),
        ("%% prose a\nx\n%% nonsense b\n", "line 3: '%% nonsense b'"),
        ("%% code 甲\n", "line 1: '%% code 甲'"),
        ("%% tests a\n", "line 1: `tests` needs points=NUMBER"),
        ("%% zh\n甲\n", "line 1: `%% zh` must follow"),
    ],
)
def test_bad_text_names_the_line(text: str, message: str) -> None:
    """An author's slip is reported with its line number."""
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        from_text(text)


def test_outputs_survive_an_edit_of_other_cells() -> None:
    """Making the notebook again from text keeps outputs where the code is the same."""
    before = sample.notebook()
    for cell in before.cells:
        if cell["id"] in ("setup", "add"):
            cell.outputs = [{"output_type": "stream", "name": "stdout", "text": cell["id"]}]
    after = from_text(sample.TEXT.replace("return a + b", "return b + a"), previous=before)
    assert [c["id"] for c in after.cells if c.get("outputs")] == ["setup"]


def test_a_learners_copy_has_stubs_and_no_hidden_tests() -> None:
    """Solutions and hidden tests are gone, the visible frame stays, test cells are locked."""
    cells = {base_id(c): c for c in strip(build_language(sample.notebook(), "en")).cells}
    assert cells["add"].source == 'def add(a, b):\n    """The sum."""\n    ' + CODE_STUB.replace(
        "\n", "\n    "
    )
    assert cells["add-hidden"].source == "score = 0\nfloat(score)"
    assert cells["add-hidden"].metadata["editable"] is False
    assert "Because" not in cells["why"].source


def test_an_unclosed_solution_is_refused() -> None:
    """The message names the cell and the missing mark."""
    broken = sample.TEXT.replace("    ### END SOLUTION\n\n%% tests", "\n%% tests")
    with pytest.raises(InputError, match="cell add: ### BEGIN SOLUTION without ### END SOLUTION"):
        strip(build_language(from_text(broken), "en"))
