"""`labkit course settings` and `labkit course late`: an instructor's decisions, written into `course.json`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labkit.i18n import t

if TYPE_CHECKING:
    from labkit.course.late import LatePolicy

_HERE = Path()


def register(group: typer.Typer) -> None:
    """Add both commands to `labkit course`."""

    @group.command()
    def settings(
        quiz: Annotated[str | None, typer.Option(help="practice or graded")] = None,
        variants: Annotated[
            bool | None, typer.Option("--variants/--no-variants", help="own numbers for every learner")
        ] = None,
        course: Annotated[Path, typer.Option(help="the course folder")] = _HERE,
    ) -> None:
        """Show or change how quizzes count. A change reaches learners with the next release."""
        from labkit.course.project import open_course
        from labkit.course.settings import changed, write_settings

        opened = open_course(course)
        given: dict[str, Any] = {"quiz": quiz, "variants": variants}
        given = {name: value for name, value in given.items() if value is not None}
        found = changed(opened.root, opened.settings, **given)
        if given:
            write_settings(opened.root, found)
        typer.echo(f"language: {found.language}")
        typer.echo(f"quiz: {found.quiz}")
        typer.echo(f"variants: {'on' if found.variants else 'off'}")
        for module, policy in sorted(found.late.items()):
            typer.echo(f"late {module}: {described(policy)}")

    @group.command()
    def late(
        module: Annotated[str, typer.Argument(help="such as 03-resources, or * for all")],
        due: Annotated[str | None, typer.Option(help="ISO time, UTC when it names no zone")] = None,
        per_day: Annotated[float | None, typer.Option(help="share of the score, each begun day")] = None,
        most: Annotated[float | None, typer.Option(help="largest share that is taken")] = None,
        grace_minutes: Annotated[float | None, typer.Option(help="free minutes after it is due")] = None,
        student: Annotated[
            list[str] | None, typer.Option(help="DUE holds for these only; repeatable")
        ] = None,
        course: Annotated[Path, typer.Option(help="the course folder")] = _HERE,
    ) -> None:
        """Say when a module is due and what lateness costs; with --student, grant an extension."""
        from labkit.course.project import open_course
        from labkit.course.settings import changed, write_settings
        from labkit.errors import InputError

        opened = open_course(course)
        name = module if module == "*" else full_name(opened.modules(), module)
        import msgspec

        policies = msgspec.to_builtins(opened.settings.late)
        policy = policies.setdefault(name, {})
        if student:
            if due is None:
                raise InputError("is needed with --student", field="--due")
            policy.setdefault("extensions", {}).update(dict.fromkeys(student, due))
            due = None
        given = {"due": due, "per_day": per_day, "most": most, "grace_minutes": grace_minutes}
        policy.update({key: value for key, value in given.items() if value is not None})
        found = changed(opened.root, opened.settings, late=policies)
        write_settings(opened.root, found)
        typer.echo(f"late {name}: {described(found.late[name])}")


def described(policy: LatePolicy) -> str:
    """A policy in one line."""
    parts = []
    if policy.due:
        parts.append(t(f"due {policy.due}", f"截止 {policy.due}"))
    if policy.per_day is not None:
        parts.append(t(f"{policy.per_day:.0%} a day", f"每天扣 {policy.per_day:.0%}"))
    if policy.most is not None:
        parts.append(t(f"at most {policy.most:.0%}", f"最多扣 {policy.most:.0%}"))
    if policy.grace_minutes:
        parts.append(t(f"{policy.grace_minutes:g} minutes of grace", f"宽限 {policy.grace_minutes:g} 分钟"))
    parts += [f"{student}: {due}" for student, due in sorted(policy.extensions.items())]
    return ", ".join(parts)


def full_name(names: list[str], module: str) -> str:
    """The released module that `module` is or begins. Raises InputError."""
    from labkit.errors import InputError

    found = [m for m in names if m == module] or [m for m in names if m.startswith(module)]
    if len(found) != 1:
        raise InputError(
            "is no released module", field="MODULE", value=module, hint="released: " + ", ".join(names)
        )
    return found[0]
