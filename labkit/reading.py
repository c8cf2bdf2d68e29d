"""What people hand in: durations, and objects from scenarios, files, YAML and dicts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from labkit.cluster.generate import generated
from labkit.errors import InputError, LabError
from labkit.objects.codec import Document, load_documents
from labkit.places import data_dir

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str | float) -> float:
    """Seconds in "10m", "1m30s", "500ms" or a plain number. InputError when it is none of these."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return float(text)
    parts = _DURATION.findall(str(text))
    if not parts or "".join(n + u for n, u in parts) != str(text).replace(" ", ""):
        raise InputError(
            f"{text!r} is not a duration", hint='write "10s", "5m", "1h30m" or a number of seconds'
        )
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def read_objects(source: Any) -> list[Document]:
    """Objects from a scenario's name, a path, YAML or JSON text, a dict, or a list of these.

    InputError or LabError says what is wrong and where.
    """
    if isinstance(source, dict):
        if isinstance(source.get("items"), list):
            return [d for item in source["items"] for d in read_objects(item)]
        return [Document(source)]
    if isinstance(source, Path):
        return _read_file(source)
    if isinstance(source, str):
        if "\n" not in source and ":" not in source:
            return _read_named(source)
        return load_documents(source)
    if isinstance(source, Iterable):
        return [d for item in source for d in read_objects(item)]
    raise InputError(
        f"cannot read objects from a {type(source).__name__}", hint="give YAML text, a path or dicts"
    )


def _read_named(name: str) -> list[Document]:
    folder = data_dir("clusters")
    for path in (folder / f"{name}.yaml", Path(name)):
        if path.is_file():
            return _read_file(path)
    made = generated(name)
    if made is not None:
        return [Document(raw) for raw in made]
    known = sorted(p.stem for p in folder.glob("*.yaml"))
    raise LabError(
        f"there is no scenario or file called {name!r}",
        hint="scenarios: " + ", ".join(known) + ", and nodes-N for N generated nodes",
    )


def _read_file(path: Path) -> list[Document]:
    try:
        return load_documents(path.read_text(encoding="utf-8"), str(path))
    except OSError as e:
        raise LabError(f"{path}: {e.strerror or e}") from e
    except UnicodeDecodeError as e:
        raise LabError(f"{path}: is not UTF-8 text") from e
