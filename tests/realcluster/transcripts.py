"""kubectl sessions as text: run a list of commands, and wash out of the output what no two servers share."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .harness import kubectl

_AGE = r"(?:<invalid>|<unknown>|\d+[smhdy](?:\d+[smhd])?)"
_REPLACEMENTS = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)", "<time>"),
    (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
    (r'(resourceVersion"?: )"\d+"', r"\1<version>"),
    (r"(Resource Version:\s+)\d+", r"\1<version>"),
    (r"127\.0\.0\.1:\d+", "<server>"),
    (r"\b10\.\d+\.\d+\.\d+\b", "<ip>"),
    (r"^(Age:\s+).*$", r"\1<age>"),
    # The whole object that a patch would have made, then words of encoding/json about it.
    (r"patch: Invalid value: .*$", "patch: Invalid value: <object and reason>"),
)
# Behind "pod updates may not change fields other than ..." the real server dumps its Go structs as a diff.
_STRUCT_DUMP = re.compile(r"(?m)^@@ -\d.* @@\n(?:[-+ ].*\n)*\n?")
# Headings under which a table shows a duration.
_AGE_COLUMNS = ("AGE", "LAST SEEN", "FIRST SEEN", "Age")


@dataclass(frozen=True)
class Step:
    """One command line (``kubectl`` left out) and what it reads from standard input."""

    command: str
    stdin: str | None = None


def wash(text: str) -> str:
    """Text without ages, times, uids, versions, addresses and the padding that depends on their length."""
    text = _STRUCT_DUMP.sub("", _without_managed_fields(text))
    lines: list[str] = []
    spans: list[tuple[int, int | None]] = []
    for line in text.splitlines():
        if found := _age_spans(line):
            spans = found
        elif not line.strip():
            spans = []
        else:
            line = _wash_ages(line, spans)
        # After the ages, whose columns are found by their offset.
        for pattern, replacement in _REPLACEMENTS:
            line = re.sub(pattern, replacement, line)
        # Inside a line every run of blanks counts as one, for columns are as wide as their widest cell.
        indent = line[: len(line) - len(line.lstrip())]
        lines.append(indent + re.sub(r"\s{2,}", "  ", line.strip()))
    return "\n".join(lines)


def _without_managed_fields(text: str) -> str:
    # kubectl hides them itself, except in raw answers, which come as one line of JSON.
    try:
        parsed = json.loads(text)
    except ValueError:
        return text
    if isinstance(parsed, dict) and isinstance(parsed.get("metadata"), dict):
        parsed["metadata"].pop("managedFields", None)
    return json.dumps(parsed, indent=4, sort_keys=True)


def _age_spans(line: str) -> list[tuple[int, int | None]]:
    spans: list[tuple[int, int | None]] = []
    for heading in _AGE_COLUMNS:
        for match in re.finditer(rf"(?:(?<=\s\s)|^){heading}(\s{{2,}}|$)", line):
            spans.append((match.start(), match.end() if match.end() < len(line) else None))
    return sorted(spans, reverse=True) if line.split()[:1] != ["Age:"] else []


def _wash_ages(line: str, spans: Sequence[tuple[int, int | None]]) -> str:
    for start, end in spans:
        cell = line[start:end]
        line = (
            line[:start]
            + re.sub(rf"^{_AGE}(?:\s\(x\d+ over {_AGE}\))?", "<age>", cell)
            + (line[end:] if end else "")
        )
    return line


def run(steps: Sequence[Step], kubeconfig: Path) -> list[str]:
    """Washed transcripts of the steps, one text each: the command, exit status, standard output and error."""
    return [_run_one(step, kubeconfig) for step in steps]


def _run_one(step: Step, kubeconfig: Path) -> str:
    result = kubectl(*shlex.split(step.command), kubeconfig=kubeconfig, stdin=step.stdin, check=False)
    parts = [f"$ kubectl {step.command}", wash(result.stdout)]
    if result.stderr.strip():
        parts.append("stderr: " + wash(result.stderr))
    if result.returncode:
        parts.append(f"exit {result.returncode}")
    return "\n".join(part for part in parts if part)
