"""Exports parse, keep every question, and carry the key that the engine computed."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest
from labkit.errors import InputError
from labkit.i18n import language
from labkit.quiz.export import export_bank

from tests.quiz.banks import bank, cpu_runner


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
