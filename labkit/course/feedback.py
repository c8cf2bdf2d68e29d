"""What a learner gets back: points, findings, and each failing check with its data. No hidden test, no key."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from labkit.course.graded_cells import graded_cells
from labkit.course.ledger import GRADED, Ledger, Record
from labkit.course.page import cleaned, e, page, status, table, terminal
from labkit.course.project import Course
from labkit.course.source import read_notebook
from labkit.course.strip import strip
from labkit.errors import LabError
from labkit.i18n import language, t

_LONGEST = 6000
_EXCHANGE_FILES = ("timestamp.txt", "submission_secret.txt")


def write_feedback(course: Course, module: str) -> list[Path]:
    """`feedback/<student>/<module>/<module>.html` for every recorded submission."""
    source = read_notebook(course.root / "source" / module / f"{module}.ipynb")
    released = graded_cells(strip(source))
    comments = _comments(course, module)
    written = []
    for record in Ledger(course.root).all(module):
        with language(record.language):
            text = feedback_page(course, record, released, comments.get(record.student, {}))
        path = course.root / "feedback" / record.student / module / f"{module}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        _for_the_exchange(course.root / "submitted" / record.student / module, path.parent)
        written.append(path)
    return written


def _for_the_exchange(submitted: Path, folder: Path) -> None:
    """What `nbgrader release_feedback` needs to find the learner's submission again."""
    for name in _EXCHANGE_FILES:
        file = submitted / name
        if file.is_file() and not file.is_symlink() and file.stat().st_size < _LONGEST:
            shutil.copyfile(file, folder / name)


def _comments(course: Course, module: str) -> dict[str, dict[str, str]]:
    """student -> cell -> a person's comment, and their points, from the gradebook."""
    from nbgrader.api import Gradebook, MissingEntry

    found: dict[str, dict[str, str]] = {}
    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as book:
        try:
            submissions = book.assignment_submissions(module)
        except MissingEntry:
            return {}
        for submission in submissions:
            mine = found.setdefault(submission.student.id, {})
            for notebook in submission.notebooks:
                for comment in notebook.comments:
                    if comment.manual_comment:
                        mine[comment.name] = comment.manual_comment
                for grade in notebook.grades:
                    if grade.manual_score is not None:
                        mine[f"points of {grade.name}"] = f"{grade.manual_score:g}"
    return found


def feedback_page(course: Course, record: Record, released: dict[str, Any], comments: dict[str, str]) -> str:
    """One submission's page, in the current language."""
    title = t(f"Feedback: {record.module}", f"反馈：{record.module}")
    if record.status != GRADED:
        why = t("Not graded. This is not a zero: ", "未评分。这不是零分：")
        return page(
            title,
            f"<p>{e(record.student)}</p>",
            f'<p class="fail">✕ {e(why)}{e(record.reason)}</p>',
            _findings(record),
        )
    parts = [
        f"<p>{e(record.student)}: <b>{record.score:g}</b> / {record.most:g} {t('points', '分')}</p>",
    ]
    if record.late:
        parts.append(f"<p>{t('Late penalty', '迟交扣分')}: {record.late:g}</p>")
    if record.changed:
        said = t("labkit or Python was changed and put back: ", "labkit 或 Python 被改动，已恢复：")
        parts.append(f'<p class="fail">! {e(said)}{e(", ".join(record.changed))}</p>')
    parts += [_findings(record), _summary(record, comments)]
    path = course.root / "autograded" / record.student / record.module / f"{record.module}.ipynb"
    if path.is_file():
        try:
            parts += _cells(read_notebook(path), released, record, comments)
        except (LabError, ValueError, TypeError, AttributeError) as problem:
            # One notebook that cannot be shown keeps nobody else's page from being written.
            said = t("The cells cannot be shown: ", "无法显示各单元：")
            parts.append(f"<p>{e(said)}{e(problem)}</p>")
    return page(title, *parts)


def _findings(record: Record) -> str:
    if not record.findings:
        return ""
    items = "".join(f"<li>{e(f['text'])}</li>" for f in record.findings)
    return f"<section><h2>{t('About your file', '关于你的文件')}</h2><ul>{items}</ul></section>"


def _summary(record: Record, comments: dict[str, str]) -> str:
    rows = []
    for id, points in record.marks.items():
        most = record.maxima.get(id, 0)
        by_hand = comments.get(f"points of {id}")
        if by_hand is not None:
            verdict, shown = status("pass", t("marked by a person", "人工评分")), by_hand
        elif points is None:
            verdict, shown = status("wait", t("a person will mark it", "等待人工评分")), "–"
        elif points >= most:
            verdict, shown = status("pass", t("full marks", "满分")), f"{points:g}"
        else:
            word = t("no points", "未得分") if points == 0 else t("part of the points", "部分得分")
            verdict, shown = status("fail", word), f"{points:g}"
        rows.append([id, verdict, shown, f"{most:g}", terminal(record.notes.get(id, ""))])
    columns = [
        t("exercise", "练习"),
        t("verdict", "判定"),
        t("points", "得分"),
        t("of", "满分"),
        t("note", "说明"),
    ]
    return table(columns, rows, numbers=(2, 3))


def _cells(notebook: Any, released: dict[str, Any], record: Record, comments: dict[str, str]) -> list[str]:
    parts = []
    for cell in notebook.cells:
        mark = cell.metadata.get("nbgrader") or {}
        id = mark.get("grade_id")
        if id not in released or not (mark.get("grade") or mark.get("solution")):
            continue
        is_answer = bool(mark.get("solution"))
        shown = cell.source if is_answer else released[id].source
        body = f"<pre>{e(shown)}</pre>" if shown.strip() else ""
        if id in comments:
            body += f"<p><b>{t('Comment', '评语')}:</b> {e(comments[id])}</p>"
        if cell.cell_type == "code":
            body += "".join(_output(o, is_answer) for o in cell.outputs)
        points = record.marks.get(id)
        head = f"{id}" + (f" – {points:g} / {record.maxima.get(id, 0):g}" if points is not None else "")
        parts.append(f"<section><h2>{e(head)}</h2>{body}</section>")
    return parts


def _output(output: Any, is_answer: bool) -> str:
    kind = output.get("output_type")
    if kind == "error":
        said = f"{output.get('ename')}: {output.get('evalue')}"
        # A traceback through a test cell would show the lines of hidden tests.
        lines = terminal("\n".join(output.get("traceback") or [])) if is_answer else ""
        more = (
            f"<details><summary>{t('Traceback', '回溯')}</summary><pre>{e(lines[-_LONGEST:])}</pre></details>"
            if lines
            else ""
        )
        return f'<p class="fail">✕ {e(said)}</p>{more}'
    if kind == "stream":
        return f"<pre>{e(terminal(str(output.get('text')))[-_LONGEST:])}</pre>"
    data = output.get("data") or {}
    if "text/html" in data:
        return cleaned(str(data["text/html"])[: 10 * _LONGEST])
    text = str(data.get("text/plain", ""))
    return f"<pre>{e(text[-_LONGEST:])}</pre>" if is_answer and text else ""
