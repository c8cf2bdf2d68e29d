"""What a submission shows, made harmless: known shapes only, text that can be stored, nothing that acts in a browser.

Formgrader shows `autograded/` as it is, scripts and all, in a page that may change marks and read every submission.
"""

from __future__ import annotations

import re
from typing import Any

from labkit.course.page import cleaned

_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
_CELL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
#: The beginning of a tag; a word joiner after it makes it text, and looks the same.
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_SCRIPT_LINK = re.compile(r"\b[jv](?=(?:ava|b)script\b)", re.IGNORECASE)
#: Also of a tag or a link.
_ENTITY = re.compile(r"&(?=[#A-Za-z])")
_JOINER = "\u2060"
_OF_CELLS = ("nbgrader", "deletable", "editable")
_OF_NOTEBOOKS = ("kernelspec", "language_info", "labkit")


def encodable(value: Any) -> Any:
    """The same with U+FFFD in place of halves of surrogate pairs, which JSON can hold and no file can."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    if isinstance(value, dict):
        return type(value)({encodable(k): encodable(v) for k, v in value.items()})
    return [encodable(v) for v in value] if isinstance(value, list) else value


def harmless(output: Any) -> dict[str, Any]:
    """One output in nbformat's shape, whatever was reported. Raises nothing."""
    kind = output.get("output_type")
    if kind == "stream":
        name = "stderr" if output.get("name") == "stderr" else "stdout"
        return {"output_type": "stream", "name": name, "text": _text(output.get("text"))}
    if kind == "error":
        lines = output.get("traceback")
        return {
            "output_type": "error",
            "ename": _text(output.get("ename")),
            "evalue": _text(output.get("evalue")),
            "traceback": [_text(line) for line in lines] if isinstance(lines, list) else [],
        }
    data = output.get("data")
    shown: dict[str, Any] = {
        "output_type": "execute_result" if kind == "execute_result" else "display_data",
        "data": _data(data) if isinstance(data, dict) else {},
        "metadata": {},
    }
    if kind == "execute_result":
        shown["execution_count"] = None
    return shown


def _text(value: Any) -> str:
    return str(encodable(value)) if isinstance(value, str) else "" if value is None else str(value)[:1000]


def _data(data: dict[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind in ("text/plain", "text/html", "text/markdown", "image/png", "image/jpeg"):
        value = data.get(kind)
        if value is None:
            continue
        text = _text(value)
        if kind == "text/html":
            found[kind] = cleaned(text)
        elif kind == "text/markdown":
            found[kind] = _inert_text(text)
        elif not kind.startswith("image/") or _BASE64.fullmatch(text):
            found[kind] = text
    return found


def make_inert(notebook: Any, source: Any) -> None:
    """Prose that is not the course's own loses its tags and script links, cells and notebook their other metadata."""
    own = {c.source for c in source.cells if c.cell_type != "code"}
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            cell.pop("attachments", None)
            if cell.source not in own:
                cell.source = _inert_text(cell.source)
        cell.metadata = type(cell.metadata)({k: v for k, v in cell.metadata.items() if k in _OF_CELLS})
        if not _CELL_ID.fullmatch(str(cell.get("id"))):
            cell["id"] = f"cell-{number}"
    kept = {k: source.metadata[k] for k in _OF_NOTEBOOKS if k in source.metadata}
    notebook.metadata = type(notebook.metadata)(kept)


def _inert_text(text: str) -> str:
    for pattern in (_TAG, _SCRIPT_LINK, _ENTITY):
        text = pattern.sub(lambda found: found[0] + _JOINER, text)
    return text
