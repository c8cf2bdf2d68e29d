"""`labkit quiz`: answer a bank in the terminal, check banks, export them for a learning platform."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from labkit.i18n import t

if TYPE_CHECKING:
    import typer

    from labkit.quiz.marking import Mark
    from labkit.quiz.present import Shown
    from labkit.quiz.session import Session

GLYPHS = {"pass": "✓", "fail": "✕", "skip": "–", "error": "!"}


def register(app: typer.Typer) -> None:
    """Add the sub-commands."""
    import typer

    group = typer.Typer(no_args_is_help=True, help="Answer, check or export question banks.")
    app.add_typer(group, name="quiz")

    @group.command("list")
    def list_banks() -> None:
        """Show the banks and their questions."""
        from labkit.quiz.bank import bank_names, find_bank

        for name in bank_names():
            bank = find_bank(name)
            typer.echo(f"{name}: {bank.title}")
            for question in bank.questions:
                typer.echo(f"  {question.id:<14} {question.kind:<13} {first_line(str(question.text))}")

    @group.command()
    def run(
        bank: Annotated[str, typer.Argument(help="name of a bank, or a YAML file")],
        question: Annotated[
            list[str] | None, typer.Option("--question", "-q", help="only these; repeatable")
        ] = None,
        folder: Annotated[Path, typer.Option(help="where answers/ is")] = Path(),
        prove: Annotated[bool, typer.Option("--prove", help="run the evidence after each answer")] = False,
    ) -> None:
        """Ask the questions here; answers are stored in answers/<bank>.json."""
        from labkit.quiz.session import Session

        session = Session(bank, question or None, folder=folder)
        got = total = 0.0
        for id in session.ids:
            shown = session.shown(id)
            total += shown.points
            result = _ask(session, shown, typer.echo)
            if result is None:
                typer.echo(t("Stopped; what you answered is stored.", "已停止；已作答的内容已保存。"))
                raise typer.Exit(1)
            got += result.fraction * shown.points
            if prove:
                _prove(session, id, typer.echo)
        if session.bank is None:
            typer.echo(t("Your answers are marked after the deadline.", "答案将在截止后评分。"))
        else:
            typer.echo(t(f"{got:g} of {total:g} points", f"得分 {got:g} / {total:g}"))

    @group.command("verify", hidden=True)
    @group.command()
    def check(
        banks: Annotated[list[str] | None, typer.Argument(help="banks or YAML files; default: all")] = None,
        evidence: Annotated[
            bool, typer.Option("--evidence/--no-evidence", help="run the evidence too")
        ] = True,
    ) -> None:
        """Check banks against the schema and run all evidence; exit 1 when something does not hold."""
        from labkit.quiz.verify import verify_bank

        failed = False
        for report in (verify_bank(name, run=evidence) for name in banks or _all_banks()):
            failed |= bool(report.problems)
            word = t("holds", "成立") if not report.problems else t("does not hold", "不成立")
            typer.echo(
                f"{'✕' if report.problems else '✓'} {report.name}: {word}; "
                + t(
                    f"{report.questions} questions, {report.runs} runs",
                    f"{report.questions} 题，运行 {report.runs} 次",
                )
            )
            for problem in report.problems:
                typer.echo(f"  {problem}")
        if failed:
            raise typer.Exit(1)

    @group.command()
    def export(
        bank: Annotated[str, typer.Argument(help="name of a bank, or a YAML file")],
        format: Annotated[str, typer.Option("--format", help="moodle-xml, gift or qti")],
        output: Annotated[
            Path | None, typer.Option("--output", "-o", help="file to write; default: standard output")
        ] = None,
        seed: Annotated[str, typer.Option(help="numbers of parameterised questions")] = "learner/export/0",
    ) -> None:
        """Write a bank for an LMS. Kinds that it does not know become questions that it does."""
        from labkit.errors import InputError
        from labkit.quiz.bank import find_bank
        from labkit.quiz.export import export_bank

        content, notes = export_bank(find_bank(bank), format, seed)
        if output is None:
            sys.stdout.buffer.write(content)
        else:
            try:
                output.write_bytes(content)
            except OSError as e:
                raise InputError(
                    t(f"cannot be written: {e.strerror}", f"无法写入：{e.strerror}"), file=str(output)
                ) from e
        for note in notes:
            typer.echo(note, err=True)


def _all_banks() -> list[str]:
    from labkit.quiz.bank import bank_names

    return bank_names()


def first_line(text: str, width: int = 70) -> str:
    """The beginning of a text, for lists."""
    line = text.strip().splitlines()[0]
    return line if len(line) <= width else line[: width - 1] + "…"


def _ask(session: Session, shown: Shown, echo: Any) -> Mark | None:
    """One question: shown, answered, stored, marked. None when the learner ends the session."""
    from labkit.quiz.marking import Mark

    echo("")
    echo(f"[{shown.id}] {shown.text}")
    if shown.given:
        echo(_indented(shown.given))
    if shown.start:
        echo(_indented(shown.start))
    for left in shown.lefts:
        echo(f"  {left.id}: {left.text}")
    for number, choice in enumerate(shown.choices, 1):
        echo(f"  {number}) {choice.text}")
    while True:
        response = _read(shown, echo)
        if response is None:
            return None
        if response != "":
            break
    attempt = session.submit(shown.id, response)
    if session.answers.aside is not None:
        aside = session.answers.aside.name
        echo(
            t(
                f"The answers file was damaged; it is kept as {aside}.",
                f"答案文件已损坏，原文件保留为 {aside}。",
            )
        )
    result = session.mark(shown.id, response)
    if result is None:
        echo(t(f"Saved (attempt {attempt.number}).", f"已保存（第 {attempt.number} 次）。"))
        return Mark(0.0)
    echo(f"{'✓' if result.fraction >= 1 else '✕' if result.fraction <= 0 else '◷'} {result.verdict}")
    for line in result.lines:
        echo(f"  {GLYPHS[line.status]} {line.word}: {line.text}")
        if line.why:
            echo(_indented(line.why, "      "))
    if result.explanation:
        echo(_indented(result.explanation))
    if result.corrections:
        echo(
            "  "
            + t(
                "What others say, and what Kubernetes 1.36 does:", "别处的说法与 Kubernetes 1.36 的实际行为："
            )
        )
    for source, fact in result.corrections:
        echo(f"    ✕ {source}")
        echo(_indented(fact, "      "))
    return result


def _prove(session: Session, id: str, echo: Any) -> None:
    for about, outcome in session.evidence(id):
        echo(f"  {GLYPHS['pass' if outcome.holds else 'error']} " + t("proof: ", "证明：") + about)
        for difference in outcome.differences:
            echo(_indented(difference, "      "))


def _indented(text: str, by: str = "    ") -> str:
    return "\n".join(by + line for line in text.splitlines())


_PROMPTS = {
    "single": ("number of your answer", "答案编号"),
    "predict_node": ("number of your answer", "答案编号"),
    "multiple": ("numbers of all that are right, such as 1 3", "所有正确答案的编号，如 1 3"),
    "order": ("numbers in the right order, such as 2 1 3", "按正确顺序输入编号，如 2 1 3"),
    "match": ("pairs, such as a=2 b=1", "配对，如 a=2 b=1"),
    "numeric": ("a number", "一个数"),
    "fix_yaml": ("path of a file with the mended YAML", "修好的 YAML 文件路径"),
}


def _read(shown: Shown, echo: Any) -> Any:
    """The response, "" when it could not be understood, None at the end of input."""
    try:
        said = input(t(*_PROMPTS[shown.kind]) + ": ").strip()
    except (EOFError, KeyboardInterrupt):
        return None
    try:
        return understood(shown, said)
    except ValueError as e:
        echo("  " + t("Not understood: ", "没看懂：") + str(e))
        return ""


def understood(shown: Shown, said: str) -> Any:
    """What was typed as a response. Raises ValueError; its text says what is wrong."""
    if not said:
        raise ValueError(t("nothing was typed; Ctrl-D ends", "没有输入内容；按 Ctrl-D 结束"))
    numbers = re.sub("[,，、;；]", " ", said).split()
    if shown.kind in ("single", "predict_node"):
        return _choice(shown, said)
    if shown.kind == "multiple":
        return list(dict.fromkeys(_choice(shown, n) for n in numbers))
    if shown.kind == "order":
        order = [_choice(shown, n) for n in numbers]
        if sorted(order) != sorted(c.id for c in shown.choices):
            last = len(shown.choices)
            raise ValueError(t(f"each number from 1 to {last} once", f"1 到 {last} 的每个编号写一次"))
        return order
    if shown.kind == "match":
        return _pairs(shown, numbers)
    if shown.kind == "fix_yaml":
        return _file(said)
    from labkit.quiz.marking import parse_number

    if parse_number(said) is None:
        raise ValueError(t(f"{said!r} is no number", f"{said!r} 不是数字"))
    return said


def _pairs(shown: Shown, parts: list[str]) -> dict[str, str]:
    lefts = [left.id for left in shown.lefts]
    pairs: dict[str, str] = {}
    for part in parts:
        left, equals, right = part.replace("＝", "=").partition("=")
        if not equals or left not in lefts:
            names = ", ".join(lefts)
            raise ValueError(
                t(
                    f"{part!r} is no pair: write NAME=NUMBER, with one of {names}",
                    f"{part!r} 不是配对：请写成 名称=编号，名称为 {names} 之一",
                )
            )
        pairs[left] = _choice(shown, right)
    return pairs


def _file(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except OSError as e:
        raise ValueError(t(f"{path} cannot be read: {e.strerror}", f"无法读取 {path}：{e.strerror}")) from e
    except UnicodeDecodeError as e:
        raise ValueError(t(f"{path} is not UTF-8 text", f"{path} 不是 UTF-8 文本")) from e


def _choice(shown: Shown, said: str) -> str:
    last = len(shown.choices)
    if not re.fullmatch("[0-9]{1,3}", said) or not 1 <= int(said) <= last:
        raise ValueError(t(f"{said!r} is no number from 1 to {last}", f"{said!r} 不是 1 到 {last} 的编号"))
    return shown.choices[int(said) - 1].id
