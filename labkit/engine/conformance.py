"""Compares replayed scenarios with recorded decisions, field by field."""

from __future__ import annotations

import gzip
import itertools
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labkit.engine.replay import replay
from labkit.errors import InputError
from labkit.i18n import t
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


@dataclass
class Report:
    """What a run of `check` found."""

    families: list[FamilyResult]
    problems: list[InputError] = field(default_factory=list)

    @property
    def all_match(self) -> bool:
        """Every family matches and every line could be used."""
        return not self.problems and all(f.all_match for f in self.families)


def golden_files(paths: list[Path]) -> list[Path]:
    """The trace files in `paths`; folders are searched for `*.jsonl` and `*.jsonl.gz`. InputError when there is none."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if p.name.endswith((".jsonl", ".jsonl.gz")))
            if not inside:
                raise InputError(
                    t(
                        "no *.jsonl or *.jsonl.gz files in this folder",
                        "此文件夹中没有 *.jsonl 或 *.jsonl.gz 文件",
                    ),
                    file=str(path),
                )
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise InputError(t("no such file or folder", "没有这个文件或文件夹"), file=str(path))
    return found


def scenarios(path: Path) -> Iterator[RawObject | InputError]:
    """The scenarios of one file, and in the place of a line that cannot be used an error that says why."""
    opener = gzip.open if path.name.endswith(".gz") else open
    try:
        with opener(path, "rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _scenario(path, number, line)
    except (OSError, EOFError, zlib.error) as e:
        yield InputError(
            t(f"cannot be read: {e}", f"无法读取：{e}"),
            file=str(path),
            hint=t("copy the file again; it is damaged or cut off", "请重新复制文件；它已损坏或不完整"),
        )


def _scenario(path: Path, number: int, line: bytes) -> RawObject | InputError:
    def wrong(problem: str) -> InputError:
        return InputError(
            t(f"line {number}: {problem}", f"第 {number} 行：{problem}"),
            file=str(path),
            hint=t(
                "each line holds one scenario, see tests/golden/FORMAT.md",
                "每行一个场景，见 tests/golden/FORMAT.md",
            ),
        )

    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as e:
        return wrong(t(f"not JSON: {e}", f"不是 JSON：{e}"))
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        return wrong(t("no scenario: it needs a name", "不是场景：缺少 name"))
    name = found["name"]
    for key in ("objects", "pods"):
        if found.get(key) is not None and not _is_list_of_dicts(found[key]):
            return wrong(t(f"{name}: {key} must be a list of objects", f"{name}：{key} 必须是对象列表"))
    if "configError" not in found and not _is_list_of_dicts(found.get("expect")):
        return wrong(
            t(
                f"{name}: neither a list of decisions in expect nor a configError",
                f"{name}：既没有 expect 决策列表，也没有 configError",
            )
        )
    return found


def _is_list_of_dicts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, dict) for v in value)


def family_of(name: str) -> str:
    """`config-errors-012` -> `config-errors`, `textbook-01-balanced` -> `textbook`: what stands before the number."""
    words = list(itertools.takewhile(lambda w: not any(c.isdigit() for c in w), name.split("-")))
    return "-".join(words) or name


def check(paths: list[Path]) -> Report:
    """Replay everything in `paths`: one result per family in order of appearance, and the lines of no use."""
    results: dict[str, FamilyResult] = {}
    problems: list[InputError] = []
    for path in golden_files(paths):
        name = path.name.removesuffix(".gz").removesuffix(".jsonl")
        for scenario in scenarios(path):
            if isinstance(scenario, InputError):
                problems.append(scenario)
                continue
            family = name if scenario["name"].startswith(f"{name}-") else family_of(scenario["name"])
            result = results.setdefault(family, FamilyResult(family))
            differences = compare(scenario)
            result.total += 1
            result.matched += not differences
            result.differences += differences
    return Report(list(results.values()), problems)


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
