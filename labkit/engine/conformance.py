"""Compares replayed scenarios with recorded decisions, field by field."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labkit.engine.replay import replay
from labkit.errors import InputError
from labkit.objects.meta import RawObject


@dataclass
class Difference:
    """One field that differs."""

    scenario: str
    pod: str
    field: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        pod = f" {self.pod}" if self.pod else ""
        return f"{self.scenario}{pod} {self.field}: expected {_short(self.expected)} got {_short(self.got)}"


@dataclass
class FamilyResult:
    """Scenarios of one family: how many match, and the first differences of those that do not."""

    family: str
    matched: int = 0
    total: int = 0
    differences: list[Difference] = field(default_factory=list)

    @property
    def all_match(self) -> bool:
        """Nothing differs."""
        return self.matched == self.total


def golden_files(paths: list[Path]) -> list[Path]:
    """The trace files in `paths`; folders are searched for `*.jsonl` and `*.jsonl.gz`. InputError when there is none."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if p.name.endswith((".jsonl", ".jsonl.gz")))
            if not inside:
                raise InputError("no *.jsonl or *.jsonl.gz files in this folder", file=str(path))
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise InputError("no such file or folder", file=str(path))
    return found


def scenarios(path: Path) -> Iterator[RawObject]:
    """The scenarios of one file. InputError with the line's number when one cannot be read."""
    opener = gzip.open if path.name.endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    scenario = json.loads(line)
                except ValueError as e:
                    raise InputError(f"line {number} is not JSON: {e}", file=str(path)) from None
                if not isinstance(scenario, dict) or not isinstance(scenario.get("name"), str):
                    raise InputError(f"line {number} is no scenario: it needs a name", file=str(path))
                yield scenario
    except (OSError, EOFError, UnicodeDecodeError) as e:
        raise InputError(f"cannot be read: {e}", file=str(path)) from None


def family_of(name: str) -> str:
    """`config-errors-012` -> `config-errors`: the name up to its last number."""
    parts = name.split("-")
    while len(parts) > 1 and any(c.isdigit() for c in parts[-1]):
        parts.pop()
    return "-".join(parts)


def check(paths: list[Path]) -> list[FamilyResult]:
    """Replay everything in `paths`; one result per family, in order of appearance."""
    results: dict[str, FamilyResult] = {}
    for path in golden_files(paths):
        name = path.name.removesuffix(".gz").removesuffix(".jsonl")
        for scenario in scenarios(path):
            family = name if scenario["name"].startswith(name) else family_of(scenario["name"])
            result = results.setdefault(family, FamilyResult(family))
            differences = compare(scenario)
            result.total += 1
            result.matched += not differences
            result.differences += differences
    return list(results.values())


def compare(scenario: RawObject) -> list[Difference]:
    """What differs between the recording and our decision. A crash of ours is a difference too."""
    name = str(scenario["name"])
    try:
        got = replay(scenario)
    except Exception as e:
        return [Difference(name, "", "replay", "a decision", f"{type(e).__name__}: {e}")]
    if "configError" in scenario or "configError" in got:
        return [
            Difference(name, "", key, scenario.get(key), got.get(key))
            for key in ("configErrorStage", "configError")
            if scenario.get(key) != got.get(key)
        ]
    return list(_compare_pods(name, scenario.get("expect") or [], got["expect"]))


def _compare_pods(name: str, expected: list[Any], got: list[Any]) -> Iterator[Difference]:
    if len(expected) != len(got):
        yield Difference(name, "", "expect", f"{len(expected)} pods", f"{len(got)} pods")
    for want, have in zip(expected, got, strict=False):
        for key in dict.fromkeys((*want, *have)):
            yield from _compare(name, str(want.get("pod")), key, want.get(key), have.get(key))


def _compare(name: str, pod: str, path: str, want: Any, have: Any) -> Iterator[Difference]:
    if want == have and type(want) is type(have):
        return
    if isinstance(want, dict) and isinstance(have, dict):
        for key in dict.fromkeys((*want, *have)):
            yield from _compare(name, pod, f"{path}.{key}", want.get(key), have.get(key))
        return
    yield Difference(name, pod, path, want, have)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 300 else text[:297] + "..."
