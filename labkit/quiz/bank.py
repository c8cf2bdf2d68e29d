"""Reading question banks. What is wrong is told by file, question and field."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from labkit.errors import InputError
from labkit.i18n import t
from labkit.places import data_dir
from labkit.quiz.model import AnyQuestion, Bank, Evidence, Question, Text

#: libyaml's safe loader where it is built in: ten times as fast.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_ID = re.compile(r"^[A-Za-z0-9_-]{1,60}$")
_AT = re.compile(r"^(?P<what>.*?)(?: - at `\$?\.?(?P<field>.*)`)?$", re.DOTALL)
_KINDS = "single, multiple, numeric, order, match, fix_yaml, predict_node"


def bank_names(folder: Path | None = None) -> list[str]:
    """Names of the banks in `quizzes/`."""
    return sorted(p.stem for p in (folder or data_dir("quizzes")).glob("*.yaml"))


def find_bank(name: str, folder: Path | None = None) -> Bank:
    """The bank called `name`, or the bank in the file `name`. Raises InputError."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return load_bank(path)
    folder = folder or data_dir("quizzes")
    path = folder / f"{name}.yaml"
    if not path.is_file():
        raise InputError(
            t(f"{name!r} is no question bank", f"没有名为 {name!r} 的题库"),
            hint=t(f"banks: {', '.join(bank_names(folder))}", f"可用的题库：{', '.join(bank_names(folder))}"),
        )
    return load_bank(path)


def load_bank(path: Path) -> Bank:
    """Read and check one bank. Raises InputError for the first thing that is wrong."""
    problems: list[InputError] = []
    bank = read_bank(path, problems)
    if problems or bank is None:
        raise problems[0]
    return bank


def read_bank(path: Path, problems: list[InputError]) -> Bank | None:
    """Read one bank, collecting everything that is wrong into `problems`."""
    file = str(path)
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
    except OSError as e:
        problems.append(InputError(f"cannot be read: {e.strerror}", file=file))
        return None
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        mark = getattr(e, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        problems.append(InputError(f"is not YAML{where}: {getattr(e, 'problem', None) or e}", file=file))
        return None
    if not isinstance(raw, dict) or not isinstance(raw.get("questions"), list):
        problems.append(InputError("must be a map with `title` and `questions`", file=file))
        return None
    for unknown in sorted(set(raw) - {"title", "questions"}):
        problems.append(
            InputError("unknown field", file=file, field=str(unknown), hint="known: title, questions")
        )
    title = Text(path.stem, path.stem)
    try:
        title = msgspec.convert(raw.get("title"), Text)
    except msgspec.ValidationError as e:
        problems.append(_problem(e, file, None, "title"))
    questions: list[AnyQuestion] = []
    for number, entry in enumerate(raw["questions"], 1):
        question = _question(entry, number, file, problems)
        if question is not None:
            if any(q.id == question.id for q in questions):
                problems.append(
                    InputError("id used twice", file=file, object=f"question {question.id}", field="id")
                )
            questions.append(question)
    return Bank(id=path.stem, title=title, questions=questions)


def _question(entry: Any, number: int, file: str, problems: list[InputError]) -> AnyQuestion | None:
    name = (
        f"question {entry.get('id', f'number {number}')}"
        if isinstance(entry, dict)
        else f"question number {number}"
    )
    if isinstance(entry, dict) and isinstance(entry.get("id"), int):
        # `id: 8` reads better in YAML than `id: "8"`.
        entry = {**entry, "id": str(entry["id"])}
    try:
        question: AnyQuestion = msgspec.convert(entry, AnyQuestion)
    except msgspec.ValidationError as e:
        problems.append(_problem(e, file, name, None))
        return None
    for field, what in _further(question):
        problems.append(InputError(what, file=file, object=name, field=field))
    return question


def _problem(error: msgspec.ValidationError, file: str, name: str | None, field: str | None) -> InputError:
    match = _AT.match(str(error))
    what, at = (match["what"], match["field"]) if match else (str(error), None)
    if "Invalid value '" in what and at == "kind":
        what += f"; kinds: {_KINDS}"
    return InputError(what, file=file, object=name, field=".".join(p for p in (field, at) if p) or None)


def _further(question: Question) -> list[tuple[str, str]]:
    """What types alone cannot say."""
    found: list[tuple[str, str]] = []
    if not _ID.match(question.id):
        found.append(("id", "must be 1 to 60 of A-Z a-z 0-9 _ -"))
    if question.points <= 0:
        found.append(("points", "must be more than 0"))
    known = option_ids(question)
    for i, evidence in enumerate(question.evidence):
        for option in evidence.options:
            if option not in known:
                found.append((f"evidence[{i}].options", f"names no option: {option!r}"))
    if known and not question.proven_by_running:
        shown = {o for e in question.evidence for o in e.options}
        missing = [o for o in known if o not in shown]
        if missing:
            found.append(("evidence", f"no evidence for {', '.join(missing)}"))
    elif not question.proven_by_running and not question.evidence and getattr(question, "key", None) is None:
        found.append(("evidence", "is missing: a scenario or call that shows the answer right"))
    return found


def option_ids(question: Question) -> list[str]:
    """Ids that evidence speaks about; empty for kinds without options."""
    return [o.id for o in getattr(question, "options", [])]


def evidence_of(bank: Bank) -> list[tuple[AnyQuestion, int, Evidence]]:
    """All evidence of a bank with its question and number."""
    return [(q, i, e) for q in bank.questions for i, e in enumerate(q.proofs)]
