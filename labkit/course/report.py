"""A class in numbers: marks, difficulty and discrimination of every question, troubles; HTML and CSV."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from labkit.course.ledger import FAILED, GRADED, Ledger, Record
from labkit.course.page import e, page, status, table
from labkit.course.project import Course
from labkit.errors import InputError
from labkit.i18n import t


@dataclass(frozen=True)
class Item:
    """One question over a class. `difficulty`: mean share of points (1 = everybody has it); `discrimination`:
    correlation of its points with the rest of the score, None where nothing varies."""

    id: str
    most: float
    answered: int
    difficulty: float
    discrimination: float | None


def items(records: list[Record]) -> list[Item]:
    """Figures of every automatically marked question."""
    graded = [r for r in records if r.status == GRADED]
    ids = list(dict.fromkeys(id for r in graded for id in r.marks))
    found = []
    for id in ids:
        pairs = [(r.marks[id], r) for r in graded if r.marks.get(id) is not None]
        points = [float(p or 0) for p, _ in pairs]
        most = max((r.maxima.get(id, 0) for _, r in pairs), default=0)
        rest = [sum(v or 0 for k, v in r.marks.items() if k != id) for _, r in pairs]
        if points and most:
            found.append(
                Item(id, most, len(points), sum(points) / len(points) / most, correlation(points, rest))
            )
    return found


def correlation(xs: list[float], ys: list[float]) -> float | None:
    """Pearson's; None for fewer than three pairs or where one of them does not vary."""
    n = len(xs)
    if n < 3:
        return None
    mx, my = sum(xs) / n, sum(ys) / n
    sx, sy = math.sqrt(sum((x - mx) ** 2 for x in xs)), math.sqrt(sum((y - my) ** 2 for y in ys))
    if not sx or not sy:
        return None
    return sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True)) / (sx * sy)


def write_report(course: Course, module: str) -> tuple[Path, Path]:
    """`reports/<module>.html` and `.csv`. Raises InputError when nothing was graded."""
    records = Ledger(course.root).all(module)
    if not records:
        raise InputError(
            "has no graded submissions", field="MODULE", value=module, hint=f"labkit course grade {module}"
        )
    folder = course.root / "reports"
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.html").write_text(report_html(module, records), encoding="utf-8")
    (folder / f"{module}.csv").write_text(report_csv(records), encoding="utf-8-sig")
    return folder / f"{module}.html", folder / f"{module}.csv"


def report_html(module: str, records: list[Record]) -> str:
    """The page for the instructor."""
    graded = [r for r in records if r.status == GRADED]
    failed = [r for r in records if r.status == FAILED]
    mean = sum(r.score for r in graded) / len(graded) if graded else 0
    most = max((r.most for r in graded), default=0)
    lead = t(
        f"{len(records)} submissions: {len(graded)} graded, {len(failed)} not. Mean {mean:.2f} of {most:g}.",
        f"{len(records)} 份提交：{len(graded)} 份已评分，{len(failed)} 份未评分。平均 {mean:.2f} / {most:g}。",
    )
    parts = [f"<p>{e(lead)}</p>"]
    boxes = {r.box for r in records if r.box != "bubblewrap"}
    if boxes:
        warning = t("Graded without a closed box: ", "评分时没有隔离环境：") + "; ".join(sorted(boxes))
        parts.append(f'<p class="fail">! {e(warning)}</p>')
    if failed:
        parts.append(f"<h2>{t('Not graded, and why', '未评分及原因')}</h2>")
        parts.append(
            table([t("student", "学生"), t("reason", "原因")], [[r.student, r.reason] for r in failed])
        )
    parts += [f"<h2>{t('Questions', '题目')}</h2>", _items_table(items(records))]
    findings = Counter(f["kind"] for r in records for f in r.findings)
    if findings:
        parts.append(f"<h2>{t('What was found in the files', '文件中发现的问题')}</h2>")
        parts.append(
            table([t("finding", "问题"), t("times", "次数")], sorted(findings.items()), numbers=(1,))
        )
    parts += [f"<h2>{t('Submissions', '提交')}</h2>", _students_table(records)]
    return page(t(f"Report: {module}", f"报告：{module}"), *parts)


def _items_table(found: list[Item]) -> str:
    rows = []
    for item in found:
        sharp = "–" if item.discrimination is None else f"{item.discrimination:.2f}"
        hint = ""
        if item.difficulty < 0.3:
            hint = t("hard", "偏难")
        elif item.difficulty > 0.95:
            hint = t("everybody has it", "几乎人人答对")
        if item.discrimination is not None and item.discrimination < 0:
            hint = t("the better the class, the worse: look at it", "总分越高反而越差：请检查此题")
        rows.append([item.id, item.answered, f"{item.difficulty:.2f}", sharp, hint])
    columns = [
        t("question", "题目"),
        t("answers", "作答数"),
        t("difficulty", "难度"),
        t("discrimination", "区分度"),
        "",
    ]
    return table(columns, rows, numbers=(1, 2, 3))


def _students_table(records: list[Record]) -> str:
    rows = []
    for r in records:
        if r.status == FAILED:
            rows.append([r.student, status("fail", t("not graded", "未评分")), "–", r.reason])
            continue
        notes = [f"{k}: {v}" for k, v in r.notes.items()] + [
            f["text"] for f in r.findings if f["level"] == "flagged"
        ]
        if r.ended not in ("", "done"):
            notes.insert(0, t("a cell ended the process: ", "有单元结束了进程：") + r.ended)
        if r.changed:
            notes.insert(0, t("changed labkit: ", "改动了 labkit：") + ", ".join(r.changed))
        rows.append(
            [r.student, status("pass", t("graded", "已评分")), f"{r.score:g}", "; ".join(notes)[:400]]
        )
    return table([t("student", "学生"), "", t("points", "得分"), t("notes", "说明")], rows, numbers=(2,))


def report_csv(records: list[Record]) -> str:
    """One line a submission, one column a question."""
    ids = list(dict.fromkeys(id for r in records for id in r.marks))
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["student", "module", "status", "score", "max", "late", *ids, "reason", "language"])
    for r in records:
        good = r.status == GRADED
        marks = ["" if r.marks.get(id) is None else f"{r.marks[id]:g}" for id in ids]
        figures = [f"{r.score:g}", f"{r.most:g}", f"{r.late:g}"] if good else ["", "", ""]
        writer.writerow([safe(r.student), r.module, r.status, *figures, *marks, safe(r.reason), r.language])
    return out.getvalue()


def safe(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


EXPORTS = ("csv", "moodle", "canvas")


def export_marks(course: Course, format: str) -> str:
    """Marks of all modules for an LMS: what the gradebook says, manual parts included. Failed ones have no mark.

    Raises InputError for an unknown format.
    """
    if format not in EXPORTS:
        raise InputError(
            "is no format", field="--format", value=format, hint="formats: " + ", ".join(EXPORTS)
        )
    from labkit.course.gradebook import Book

    ledger = Ledger(course.root)
    scores: dict[str, dict[str, str]] = {}
    most: dict[str, float] = {}
    reasons: dict[str, list[str]] = {}
    done = [m for m in course.modules() if ledger.all(m)]
    for module in done:
        book = Book(course, module)
        try:
            for student, (score, maximum, _) in book.scores().items():
                scores.setdefault(student, {})[module] = f"{score:g}"
                most[module] = maximum
        finally:
            book.close()
        for record in ledger.all(module):
            scores.setdefault(record.student, {})
            if record.status == FAILED:
                scores[record.student].pop(module, None)
                reasons.setdefault(record.student, []).append(f"{module}: {record.reason}")
    out = io.StringIO()
    writer = csv.writer(out)
    students = sorted(scores)
    if format == "canvas":
        writer.writerow(["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *done])
        writer.writerow(["    Points Possible", "", "", "", "", *(f"{most.get(m, 0):g}" for m in done)])
        for s in students:
            writer.writerow([safe(s), "", "", safe(s), "", *(scores[s].get(m, "") for m in done)])
    elif format == "moodle":
        writer.writerow(["Username", *done, "Feedback comments"])
        for s in students:
            writer.writerow(
                [safe(s), *(scores[s].get(m, "") for m in done), safe("; ".join(reasons.get(s, [])))]
            )
    else:
        writer.writerow(["student", "module", "score", "max", "reason"])
        for s in students:
            for m in done:
                why = next((r for r in reasons.get(s, []) if r.startswith(f"{m}: ")), "")
                if m in scores[s] or why:
                    writer.writerow(
                        [
                            safe(s),
                            m,
                            scores[s].get(m, ""),
                            f"{most.get(m, 0):g}",
                            safe(why.removeprefix(f"{m}: ")),
                        ]
                    )
    return out.getvalue()
