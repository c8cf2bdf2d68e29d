"""QTI 2.1: a content package (zip) with one item a question and a manifest."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
import zipfile

from labkit.i18n import get_language
from labkit.quiz.export import Flat
from labkit.quiz.export_moodle import to_html
from labkit.quiz.model import Bank

QTI = "http://www.imsglobal.org/xsd/imsqti_v2p1"
IMSCP = "http://www.imsglobal.org/xsd/imscp_v1p1"
_MATCH_CORRECT = "http://www.imsglobal.org/question/qti_v2p1/rptemplates/match_correct"
_MAP_RESPONSE = "http://www.imsglobal.org/question/qti_v2p1/rptemplates/map_response"
#: (cardinality, base type, response template) of each kind.
_RESPONSE = {
    "single": ("single", "identifier", _MATCH_CORRECT),
    "multiple": ("multiple", "identifier", _MAP_RESPONSE),
    "order": ("ordered", "identifier", _MATCH_CORRECT),
    "match": ("multiple", "directedPair", _MAP_RESPONSE),
    "numeric": ("single", "float", _MATCH_CORRECT),
    "essay": ("single", "string", None),
}


def qti_package(bank: Bank, flats: list[Flat]) -> bytes:
    """The package's bytes; the same bank always gives the same bytes."""
    files = {f"items/{_name(flat)}.xml": _xml(_item(flat)) for flat in flats}
    files["imsmanifest.xml"] = _xml(_manifest(bank, list(files)))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as package:
        for path in sorted(files):
            package.writestr(zipfile.ZipInfo(path, (2030, 1, 1, 0, 0, 0)), files[path])
    return buffer.getvalue()


def _name(flat: Flat) -> str:
    return f"q-{flat.id}"


def _xml(root: ET.Element) -> bytes:
    ET.indent(root, " ")
    content: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _manifest(bank: Bank, paths: list[str]) -> ET.Element:
    manifest = ET.Element("manifest", {"xmlns": IMSCP, "identifier": f"labkit-{bank.id}"})
    metadata = ET.SubElement(manifest, "metadata")
    ET.SubElement(metadata, "schema").text = "QTIv2.1 Package"
    ET.SubElement(metadata, "schemaversion").text = "1.0.0"
    ET.SubElement(manifest, "organizations")
    resources = ET.SubElement(manifest, "resources")
    for path in paths:
        name = path.removeprefix("items/").removesuffix(".xml")
        resource = ET.SubElement(
            resources, "resource", identifier=name, type="imsqti_item_xmlv2p1", href=path
        )
        ET.SubElement(resource, "file", href=path)
    return manifest


def _item(flat: Flat) -> ET.Element:
    item = ET.Element(
        "assessmentItem",
        {
            "xmlns": QTI,
            "identifier": _name(flat),
            "title": flat.id,
            "adaptive": "false",
            "timeDependent": "false",
            "{http://www.w3.org/XML/1998/namespace}lang": "zh-CN" if get_language() == "zh" else "en",
        },
    )
    cardinality, base, template = _RESPONSE[flat.kind]
    declaration = ET.SubElement(
        item, "responseDeclaration", identifier="RESPONSE", cardinality=cardinality, baseType=base
    )
    _key(declaration, flat)
    outcome = ET.SubElement(
        item,
        "outcomeDeclaration",
        identifier="SCORE",
        cardinality="single",
        baseType="float",
        normalMaximum=f"{flat.points:g}",
    )
    ET.SubElement(ET.SubElement(outcome, "defaultValue"), "value").text = "0"
    body = ET.SubElement(item, "itemBody")
    _html(body, flat.text)
    if flat.code:
        ET.SubElement(body, "pre").text = flat.code
    _interaction(body, flat)
    whys = "\n\n".join([flat.feedback, *(f"{o.text}: {o.why}" for o in flat.options if o.why)]).strip()
    if whys or flat.solution:
        rubric = ET.SubElement(body, "rubricBlock", view="scorer tutor")
        _html(rubric, whys)
        if flat.solution:
            ET.SubElement(rubric, "pre").text = flat.solution
    if template == _MATCH_CORRECT and (flat.kind == "numeric" or flat.points != 1):
        _process(ET.SubElement(item, "responseProcessing"), flat)
    elif template:
        ET.SubElement(item, "responseProcessing", template=template)
    return item


def _process(processing: ET.Element, flat: Flat) -> None:
    """What the template match_correct cannot: points other than 1, and numbers, which `match` is not for."""
    right = ET.SubElement(ET.SubElement(processing, "responseCondition"), "responseIf")
    if flat.kind == "numeric":
        tolerance = f"{flat.tolerance:g} {flat.tolerance:g}"
        same = ET.SubElement(right, "equal", toleranceMode="absolute", tolerance=tolerance)
    else:
        same = ET.SubElement(right, "match")
    ET.SubElement(same, "variable", identifier="RESPONSE")
    ET.SubElement(same, "correct", identifier="RESPONSE")
    value = ET.SubElement(right, "setOutcomeValue", identifier="SCORE")
    ET.SubElement(value, "baseValue", baseType="float").text = f"{flat.points:g}"


def _key(declaration: ET.Element, flat: Flat) -> None:
    if flat.kind == "essay":
        return
    correct = ET.SubElement(declaration, "correctResponse")
    if flat.kind == "numeric":
        values = [f"{flat.answer:g}"]
    elif flat.kind == "match":
        values = [f"L{i} R{i}" for i in range(len(flat.pairs))]
    else:
        values = [f"C{i}" for i, o in enumerate(flat.options) if o.right]
    for value in values:
        ET.SubElement(correct, "value").text = value
    if flat.kind in ("multiple", "match"):
        mapping = ET.SubElement(
            declaration, "mapping", lowerBound="0", upperBound=f"{flat.points:g}", defaultValue="0"
        )
        for value in values:
            ET.SubElement(mapping, "mapEntry", mapKey=value, mappedValue=f"{flat.points / len(values):.5f}")
        wrongs = [i for i, o in enumerate(flat.options) if not o.right]
        for i in wrongs:
            ET.SubElement(
                mapping, "mapEntry", mapKey=f"C{i}", mappedValue=f"{-flat.points / len(wrongs):.5f}"
            )


def _interaction(body: ET.Element, flat: Flat) -> None:
    if flat.kind in ("single", "multiple"):
        limit = "1" if flat.kind == "single" else "0"
        choices = ET.SubElement(
            body, "choiceInteraction", responseIdentifier="RESPONSE", shuffle="true", maxChoices=limit
        )
        for i, option in enumerate(flat.options):
            _html(ET.SubElement(choices, "simpleChoice", identifier=f"C{i}"), option.text)
    elif flat.kind == "order":
        order = ET.SubElement(body, "orderInteraction", responseIdentifier="RESPONSE", shuffle="true")
        for i, option in enumerate(flat.options):
            _html(ET.SubElement(order, "simpleChoice", identifier=f"C{i}"), option.text)
    elif flat.kind == "match":
        match = ET.SubElement(
            body, "matchInteraction", responseIdentifier="RESPONSE", shuffle="true", maxAssociations="0"
        )
        for side in (0, 1):
            group = ET.SubElement(match, "simpleMatchSet")
            for i, pair in enumerate(flat.pairs):
                name = f"{'LR'[side]}{i}"
                _html(
                    ET.SubElement(
                        group, "simpleAssociableChoice", identifier=name, matchMax=str((1, 0)[side])
                    ),
                    pair[side],
                )
    elif flat.kind == "numeric":
        line = ET.SubElement(body, "p")
        ET.SubElement(line, "textEntryInteraction", responseIdentifier="RESPONSE", expectedLength="10")
    else:
        ET.SubElement(body, "extendedTextInteraction", responseIdentifier="RESPONSE", expectedLines="20")


def _html(parent: ET.Element, text: str) -> None:
    """Mixed content from our own small HTML."""
    wrapped = ET.fromstring(f"<div>{re.sub('&nbsp;', ' ', to_html(text))}</div>")
    for child in wrapped:
        parent.append(child)
