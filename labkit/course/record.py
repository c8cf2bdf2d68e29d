"""Run every module's solutions in both languages, and keep or check the outputs.

    python -m labkit.course.record [MODULE ...]        run, and write the outputs into the source notebooks
    python -m labkit.course.record --check DIR         write DIR/en and DIR/zh for nbval; fail on a faulty source

Widgets are kept as text only: their ids are random, and nbval compares the text.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from labkit.course.source import (
    OUTPUTS_ZH,
    build_language,
    modules,
    read_notebook,
    source_path,
    source_problems,
    write_notebook,
)
from labkit.course.workspace import support_files
from labkit.errors import LabError
from labkit.i18n import LANGUAGE_FILE, LANGUAGES

_WIDGET = "application/vnd.jupyter.widget-view+json"


def write_for_comparison(dest: Path, *, root: Path | None = None) -> list[str]:
    """Write every module with its recorded outputs to `dest/<language>/`. Returns the sources' problems."""
    problems: list[str] = []
    for module in modules(root):
        path = source_path(module, root)
        source = read_notebook(path)
        problems += source_problems(source, module)
        for language in LANGUAGES:
            _lay_out(path, build_language(source, language, outputs=True), dest / language / module, language)
    return problems


def record(module: str, *, root: Path | None = None, work: Path | None = None) -> Path:
    """Run `module` in both languages and write the outputs into its source. Raises LabError on a failing cell."""
    import tempfile

    path = source_path(module, root)
    source = read_notebook(path)
    outputs: dict[str, dict[str, list[Any]]] = {}
    with tempfile.TemporaryDirectory(dir=work) as folder:
        for language in LANGUAGES:
            target = Path(folder) / language / path.stem
            notebook = build_language(source, language)
            _lay_out(path, notebook, target, language)
            _execute(notebook, target, language)
            outputs[language] = {c["id"]: _clean(c.outputs) for c in notebook.cells if c.cell_type == "code"}
    for number, cell in enumerate((c for c in source.cells if c.cell_type == "code"), 1):
        # nbval takes a cell without a number for one that was never run.
        cell.execution_count = number
        cell.outputs = outputs["en"][cell["id"]]
        cell.metadata.pop(OUTPUTS_ZH, None)
        if outputs["zh"][cell["id"]] != cell.outputs:
            cell.metadata[OUTPUTS_ZH] = outputs["zh"][cell["id"]]
    write_notebook(source, path)
    return path


def _lay_out(source: Path, notebook: Any, folder: Path, language: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_notebook(notebook, folder / source.name)
    for relative, file in support_files(source.parent, language).items():
        (folder / relative).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / relative)
    (folder / LANGUAGE_FILE).write_text(f'{{"language": "{language}"}}\n', encoding="utf-8")


def _execute(notebook: Any, folder: Path, language: str) -> None:
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    environment = {**os.environ, "LABKIT_LANG": language}
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
    )
    try:
        client.execute(env=environment)
    except CellExecutionError as e:
        raise LabError(f"{folder.name} ({language}): {e}") from e


def _clean(outputs: list[Any]) -> list[Any]:
    from nbformat import from_dict

    kept = []
    for output in outputs:
        output = {k: v for k, v in output.items() if k != "execution_count"}
        if "data" in output:
            output["data"] = {k: v for k, v in output["data"].items() if k != _WIDGET}
        if output["output_type"] == "execute_result":
            output["execution_count"] = None
        if "metadata" in output:
            output["metadata"] = {}
        kept.append(from_dict(output))
    return kept


def main(arguments: list[str]) -> int:
    """See the module's docstring."""
    try:
        if arguments[:1] == ["--check"]:
            problems = write_for_comparison(Path(arguments[1]))
            print("\n".join(problems) if problems else f"{len(modules())} modules, 2 languages")
            return 1 if problems else 0
        for module in arguments or modules():
            print(record(module))
    except LabError as e:
        print(e, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
