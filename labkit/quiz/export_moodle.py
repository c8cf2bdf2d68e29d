"""Moodle XML (question types of Moodle 4.4 and later: multichoice, numerical, ordering, matching, essay)."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET

from labkit.quiz.export import Flat
from labkit.quiz.model import Bank


def moodle_xml(bank: Bank, flats: list[Flat]) -> bytes:
    """The bank as one category."""
    quiz = ET.Element("quiz")
    category = ET.SubElement(quiz, "question", type="category")
    _text(ET.SubElement(category, "category"), f"$course$/top/{bank.title}")
    for flat in flats:
        quiz.append(_question(bank, flat))
    ET.indent(quiz, " ")
    content: bytes = ET.tostring(quiz, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


_TYPES = {
    "single": "multichoice",
    "multiple": "multichoice",
    "numeric": "numerical",
    "order": "ordering",
    "match": "matching",
    "essay": "essay",
}


def _question(bank: Bank, flat: Flat) -> ET.Element:
    question = ET.Element("question", type=_TYPES[flat.kind])
    _text(ET.SubElement(question, "name"), f"{bank.id}-{flat.id}")
    _html(ET.SubElement(question, "questiontext"), flat.text, flat.code)
    _html(ET.SubElement(question, "generalfeedback"), flat.feedback, flat.solution)
    ET.SubElement(question, "defaultgrade").text = f"{flat.points:g}"
    ET.SubElement(question, "idnumber").text = f"{bank.id}-{flat.id}"
    if flat.kind in ("single", "multiple"):
        _choices(question, flat)
    elif flat.kind == "numeric":
        _answer(question, f"{flat.answer:g}", 100, "", tolerance=flat.tolerance)
        for option in flat.options:
            _answer(question, option.text, 0, option.why, tolerance=0)
    elif flat.kind == "order":
        for name, value in (
            ("layouttype", "VERTICAL"),
            ("selecttype", "ALL"),
            ("gradingtype", "RELATIVE_ALL_PREVIOUS_AND_NEXT"),
        ):
            ET.SubElement(question, name).text = value
        for number, option in enumerate(flat.options, 1):
            _answer(question, option.text, number, option.why, as_html=True)
    elif flat.kind == "match":
        ET.SubElement(question, "shuffleanswers").text = "true"
        for left, right in flat.pairs:
            sub = ET.SubElement(question, "subquestion", format="html")
            ET.SubElement(sub, "text").text = to_html(left)
            _text(ET.SubElement(sub, "answer"), right)
    else:
        ET.SubElement(question, "responseformat").text = "monospaced"
        ET.SubElement(question, "responserequired").text = "1"
        template = ET.SubElement(question, "responsetemplate", format="html")
        ET.SubElement(template, "text").text = ""
    return question


def _choices(question: ET.Element, flat: Flat) -> None:
    ET.SubElement(question, "single").text = "true" if flat.kind == "single" else "false"
    ET.SubElement(question, "shuffleanswers").text = "true"
    ET.SubElement(question, "answernumbering").text = "ABCD"
    rights = sum(o.right for o in flat.options)
    wrongs = len(flat.options) - rights
    for option in flat.options:
        if flat.kind == "single":
            share = 100.0 if option.right else 0.0
        else:
            share = 100 / rights if option.right else -100 / wrongs
        _answer(question, option.text, share, option.why, as_html=True)


def _answer(
    question: ET.Element,
    text: str,
    share: float,
    why: str,
    *,
    tolerance: float | None = None,
    as_html: bool = False,
) -> None:
    answer = ET.SubElement(question, "answer", fraction=f"{share:.5f}".rstrip("0").rstrip("."))
    if as_html:
        answer.set("format", "html")
    ET.SubElement(answer, "text").text = to_html(text) if as_html else text
    _html(ET.SubElement(answer, "feedback"), why)
    if tolerance is not None:
        ET.SubElement(answer, "tolerance").text = f"{tolerance:g}"


def _text(parent: ET.Element, text: str) -> None:
    ET.SubElement(parent, "text").text = text


def _html(parent: ET.Element, text: str, code: str = "") -> None:
    parent.set("format", "html")
    shown = to_html(text) + (f"<pre>{html.escape(code)}</pre>" if code else "")
    ET.SubElement(parent, "text").text = shown


def to_html(text: str) -> str:
    """Paragraphs and `code`, everything else escaped."""
    if not text.strip():
        return ""
    paragraphs = [
        re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(p.strip(), quote=False))
        for p in text.split("\n\n")
    ]
    joined = "</p><p>".join(p.replace("\n", "<br/>") for p in paragraphs if p)
    return f"<p>{joined}</p>"
