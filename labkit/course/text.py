"""Source notebooks as text, to write and to review them.

    python -m labkit.course.text notebooks/03-resources/03-resources.ipynb           print it as text
    python -m labkit.course.text notebooks/03-resources/03-resources.ipynb FILE      make it from text (- = stdin)

The text is a row of cells, each begun by a line `%% KIND ID [key=value ...]`:

    %% prose intro              English; then a line `%% zh` and the Chinese
    %% code setup               shared code; tags=a,b
    %% solution my-plugin       graded answer; ### BEGIN SOLUTION ... ### END SOLUTION marks what is removed
    %% tests my-plugin-1 points=2     checks; ### BEGIN HIDDEN TESTS ... ### END HIDDEN TESTS
    %% manual why points=1      an answer in words, marked by a person (markdown, both languages in one cell)
    %% readonly fixed           code that learners cannot change

Outputs are not part of the text: making a notebook from text keeps those of cells whose code did not change.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from labkit.course.source import OUTPUTS_ZH, base_id, cell_language, read_notebook, write_notebook
from labkit.errors import InputError, LabError

_HEADER = re.compile(r"^%% (\w+)(?: +([A-Za-z0-9_-]{1,60}))?((?: +\S+=\S+)*)\s*$")
#: kind -> (grade, solution, locked)
_GRADED = {
    "solution": (False, True, False),
    "tests": (True, False, True),
    "manual": (True, True, False),
    "readonly": (False, False, True),
}


def from_text(text: str, *, file: str = "text", previous: Any = None) -> Any:
    """The source notebook that `text` describes. Raises InputError with the line number."""
    from nbformat import v4

    notebook = v4.new_notebook()
    notebook.metadata["kernelspec"] = {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    }
    notebook.metadata["language_info"] = {"name": "python"}
    for number, kind, name, options, body in _blocks(text, file):
        if kind == "zh":
            if not notebook.cells or cell_language(notebook.cells[-1]) != "en":
                raise InputError(f"line {number}: `%% zh` must follow an English prose cell", file=file)
            name = base_id(notebook.cells[-1])
            notebook.cells.append(_cell("markdown", f"{name}-zh", body, {"tags": ["lang-zh"]}))
        elif kind == "prose":
            notebook.cells.append(_cell("markdown", f"{name}-en", body, {"tags": ["lang-en"]}))
        else:
            notebook.cells.append(_code_cell(kind, name, options, body, f"line {number}", file))
    if previous is not None:
        _keep_outputs(notebook, previous)
    return notebook


def _blocks(text: str, file: str) -> list[tuple[int, str, str, dict[str, str], str]]:
    found: list[tuple[int, str, str, dict[str, str], list[str]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("%% "):
            match = _HEADER.match(line)
            kinds = ("prose", "zh", "code", *_GRADED)
            if match is None or match[1] not in kinds or (match[1] != "zh" and not match[2]):
                raise InputError(
                    f"line {number}: {line!r} is not `%% KIND ID [key=value]`",
                    file=file,
                    hint="kinds: " + ", ".join(kinds),
                )
            options = dict(part.split("=", 1) for part in match[3].split())
            found.append((number, match[1], match[2] or "", options, []))
        elif found:
            found[-1][4].append(line)
        elif line.strip():
            raise InputError(f"line {number}: text before the first `%%` line", file=file)
    return [(n, k, i, o, "\n".join(body).strip("\n")) for n, k, i, o, body in found]


def _code_cell(kind: str, name: str, options: dict[str, str], body: str, where: str, file: str) -> Any:
    metadata: dict[str, Any] = {}
    if "tags" in options:
        metadata["tags"] = options["tags"].split(",")
    if kind in _GRADED:
        grade, solution, locked = _GRADED[kind]
        metadata["nbgrader"] = {
            "grade": grade,
            "grade_id": name,
            "locked": locked,
            "schema_version": 3,
            "solution": solution,
            "task": False,
        }
        if grade:
            try:
                points = float(options["points"])
            except (KeyError, ValueError):
                raise InputError(f"{where}: `{kind}` needs points=NUMBER", file=file) from None
            metadata["nbgrader"]["points"] = int(points) if points.is_integer() else points
    return _cell("markdown" if kind == "manual" else "code", name, body, metadata)


def _cell(kind: str, name: str, source: str, metadata: dict[str, Any]) -> Any:
    from nbformat import v4

    make = v4.new_markdown_cell if kind == "markdown" else v4.new_code_cell
    return make(source, id=name, metadata=metadata)


def _keep_outputs(notebook: Any, previous: Any) -> None:
    before = {c.get("id"): c for c in previous.cells if c.cell_type == "code"}
    for cell in notebook.cells:
        old = before.get(cell["id"])
        if cell.cell_type == "code" and old is not None and old.source == cell.source:
            cell.outputs, cell.execution_count = old.outputs, old.execution_count
            if OUTPUTS_ZH in old.metadata:
                cell.metadata[OUTPUTS_ZH] = old.metadata[OUTPUTS_ZH]


def to_text(notebook: Any) -> str:
    """The text of a source notebook; `from_text` gives the same notebook back, without outputs."""
    parts = []
    for cell in notebook.cells:
        lang, graded = cell_language(cell), cell.metadata.get("nbgrader")
        if lang == "zh":
            head = "%% zh"
        elif lang == "en":
            head = f"%% prose {base_id(cell)}"
        elif graded is not None:
            flags = (bool(graded.get("grade")), bool(graded.get("solution")), bool(graded.get("locked")))
            kind = next(k for k, v in _GRADED.items() if v == flags)
            head = f"%% {kind} {graded['grade_id']}" + (
                f" points={graded['points']:g}" if graded.get("grade") else ""
            )
        else:
            head = f"%% code {cell['id']}"
        if lang is None and cell.metadata.get("tags"):
            head += " tags=" + ",".join(cell.metadata["tags"])
        parts.append(f"{head}\n{cell.source}\n")
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    """Convert one notebook; see the module's docstring."""
    if not 1 <= len(arguments) <= 2:
        print(__doc__)
        return 2
    path = Path(arguments[0])
    try:
        if len(arguments) == 1:
            print(to_text(read_notebook(path)), end="")
            return 0
        text = sys.stdin.read() if arguments[1] == "-" else Path(arguments[1]).read_text(encoding="utf-8")
        previous = read_notebook(path) if path.exists() else None
        write_notebook(from_text(text, file=arguments[1], previous=previous), path)
    except (LabError, OSError) as e:
        print(e, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
