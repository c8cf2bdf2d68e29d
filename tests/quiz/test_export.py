"""Exports parse, keep every question, and carry the key that the engine computed."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest
from labkit.errors import InputError
from labkit.i18n import language
from labkit.quiz.bank import bank_names, find_bank, load_bank
from labkit.quiz.export import export_bank

from tests.quiz.banks import TEXT, bank, cpu_runner, write_bank


def moodle(tmp_path: Path) -> dict[str, ET.Element]:
    """Questions of the Moodle export by id."""
    content, _ = export_bank(bank(tmp_path), "moodle-xml", "s", cpu_runner)
    found = ET.fromstring(content).findall("question")
    return {(q.findtext("idnumber") or "category").removeprefix("kinds-"): q for q in found}


def test_moodle_has_every_kind(tmp_path: Path) -> None:
    """One element a question with Moodle's type for it."""
    assert {id: q.get("type") for id, q in moodle(tmp_path).items()} == {
        "category": "category",
        "one": "multichoice",
        "many": "multichoice",
        "number": "numerical",
        "order": "ordering",
        "match": "matching",
        "fix": "essay",
        "where": "multichoice",
    }


def test_moodle_fractions_and_feedback(tmp_path: Path) -> None:
    """Right options share 100 %, wrong ones take it back; each has its explanation; keys are computed."""
    questions = moodle(tmp_path)
    assert [a.get("fraction") for a in questions["many"].findall("answer")] == ["50", "50", "-50", "-50"]
    assert questions["one"].findtext("answer/feedback/text") == "<p>A it is</p>"
    where = {a.findtext("text"): a.get("fraction") for a in questions["where"].findall("answer")}
    assert (where["<p>n1</p>"], where["<p>n2</p>"]) == ("0", "100")
    numbers = questions["number"].findall("answer")
    assert [a.get("fraction") for a in numbers] == ["100", "0"]
    assert float(numbers[0].findtext("text") or 0) < float(numbers[1].findtext("text") or 0)


def test_code_keeps_its_lines_and_indentation(tmp_path: Path) -> None:
    """YAML to mend and its solution are shown as they stand, in each format."""
    fix = moodle(tmp_path)["fix"]
    assert "<pre>nodes:\n  n1:" in (fix.findtext("questiontext/text") or "")
    assert "cpu: 1" in (fix.findtext("generalfeedback/text") or "").split("<pre>")[1]
    gift = export_bank(bank(tmp_path), "gift", "s", cpu_runner)[0].decode()
    assert r"\n\n    nodes\:\n      n1\:" in gift
    assert r"####\n\n    kind\: Pod\n    metadata" in gift


#: What Moodle takes as the share of an answer; it refuses any other.
MOODLE_SHARES = {100 / n for n in range(1, 11)} | {0, 90, 80, 75, 70, 60, 40, 30, 5, 200 / 3, 250 / 3}


@pytest.mark.parametrize("name", bank_names())
def test_moodle_takes_every_share(name: str) -> None:
    """All fractions of all banks are of Moodle's list, to five places."""
    known = {round(share, 5) for share in MOODLE_SHARES}
    questions = ET.fromstring(export_bank(find_bank(name), "moodle-xml", "s")[0]).findall("question")
    answers = [a for q in questions if q.get("type") != "ordering" for a in q.findall("answer")]
    assert {abs(float(a.get("fraction") or 0)) for a in answers} <= known


@pytest.mark.parametrize("name", bank_names())
def test_gift_has_one_pair_of_braces_a_question(name: str) -> None:
    """Nothing in a text is taken for GIFT's own signs, and no blank line splits a question."""
    parts = export_bank(find_bank(name), "gift", "s")[0].decode().strip().split("\n\n")
    assert len(parts) == 1 + len(find_bank(name).questions)
    for part in parts[1:]:
        bare = re.sub(r"\\.", "", part)
        assert (bare.count("{"), bare.count("}")) == (1, 1)
        assert all(line.count("->") <= 1 for line in bare.splitlines())


def test_qti_gives_each_question_its_points(tmp_path: Path) -> None:
    """Points other than 1 and numbers with a tolerance need more than the standard template."""
    two = TEXT.replace("id: one\n    kind: single", "id: one\n    points: 3\n    kind: single")
    content, _ = export_bank(load_bank(write_bank(tmp_path, two)), "qti", "s", cpu_runner)
    package = zipfile.ZipFile(io.BytesIO(content))

    def item(id: str) -> ET.Element:
        return ET.fromstring(package.read(f"items/q-{id}.xml"))

    ns = "{http://www.imsglobal.org/xsd/imsqti_v2p1}"
    assert item("one").findtext(f".//{ns}setOutcomeValue/{ns}baseValue") == "3"
    assert [o.get("normalMaximum") for o in item("one").iter(f"{ns}outcomeDeclaration")] == ["3"]
    assert item("number").find(f".//{ns}equal") is not None
    assert item("number").find(f".//{ns}match") is None
    template = next(item("where").iter(f"{ns}responseProcessing")).get("template") or ""
    assert template.endswith("match_correct")


def test_gift_escapes_and_keeps_all(tmp_path: Path) -> None:
    """Special characters are escaped, and a note tells what changed its kind."""
    content, notes = export_bank(bank(tmp_path), "gift", "s", cpu_runner)
    text = content.decode()
    assert text.count("::kinds-") == 7
    assert "=one -> 1" in text
    assert "~%-50.00000%C#it is not" in text
    assert "metadata\\: \\{name\\: web\\}" in text
    assert [n.split(":")[0] for n in notes] == ["question fix", "question order"]


def test_qti_is_a_deterministic_package(tmp_path: Path) -> None:
    """The manifest names every item, each item's right responses exist among its choices."""
    first, _ = export_bank(bank(tmp_path), "qti", "s", cpu_runner)
    second, _ = export_bank(bank(tmp_path), "qti", "s", cpu_runner)
    assert first == second
    package = zipfile.ZipFile(io.BytesIO(first))
    items = [n for n in package.namelist() if n.startswith("items/")]
    manifest = package.read("imsmanifest.xml").decode()
    assert len(items) == 7
    for name in items:
        assert f'href="{name}"' in manifest
        root = ET.fromstring(package.read(name))
        space = {"q": "http://www.imsglobal.org/xsd/imsqti_v2p1"}
        right = {v.text for v in root.findall("q:responseDeclaration/q:correctResponse/q:value", space)}
        ids = {e.get("identifier") for e in root.iter() if e.tag.endswith("simpleChoice")}
        assert not ids or right <= ids


def test_the_language_is_the_current_one(tmp_path: Path) -> None:
    """A Chinese export is Chinese."""
    with language("zh"):
        content, _ = export_bank(bank(tmp_path), "gift", "s", cpu_runner)
    assert "选 A" in content.decode()


def test_an_unknown_format_is_told(tmp_path: Path) -> None:
    """With the list of formats."""
    with pytest.raises(InputError, match="formats: moodle-xml, gift, qti"):
        export_bank(bank(tmp_path), "csv", "s", cpu_runner)
