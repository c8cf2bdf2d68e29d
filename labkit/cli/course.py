"""`labkit course`: from release to marks, around nbgrader."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from labkit.i18n import t

if TYPE_CHECKING:
    import typer

    from labkit.course.grade import Summary
    from labkit.course.project import Course

_HERE = Path()


def register(app: typer.Typer) -> None:
    """Add the sub-commands."""
    import typer

    group = typer.Typer(
        no_args_is_help=True, help="Release, collect, grade and report a course. nbgrader stays the engine."
    )
    app.add_typer(group, name="course")
    from labkit.cli.course_settings import register as register_settings

    _register_before(group)
    register_settings(group)
    _register_after(group)


def _register_before(group: typer.Typer) -> None:
    import typer

    @group.command()
    def init(
        folder: Annotated[Path, typer.Argument(help="a new folder")],
        lang: Annotated[str, typer.Option("--lang", help="en or zh")] = "en",
        quiz: Annotated[str, typer.Option(help="practice or graded")] = "practice",
        variants: Annotated[
            bool, typer.Option("--variants", help="own numbers for every learner in graded quizzes")
        ] = False,
    ) -> None:
        """Make a course folder from the modules."""
        from labkit.course.project import init_course

        course = init_course(folder, lang, quiz=quiz, variants=variants)
        typer.echo(
            t(f"Course {course.course_id} in {course.root}", f"课程 {course.course_id} 位于 {course.root}")
        )
        typer.echo(
            t("Next: labkit course release MODULE", "下一步：labkit course release 模块")
            + f" --course {folder}"
        )

    @group.command()
    def release(
        module: Annotated[str | None, typer.Argument(help="such as 03 or 03-resources; default: all")] = None,
        lang: Annotated[
            str | None, typer.Option("--lang", help="en, zh or both; default: the course's")
        ] = None,
        student: Annotated[
            list[str] | None,
            typer.Option(help="also a folder of this learner's own, in release-to/; repeatable"),
        ] = None,
        roster: Annotated[Path | None, typer.Option(help="the same for every line of this file")] = None,
        course: Annotated[Path, typer.Option(help="the course folder")] = _HERE,
    ) -> None:
        """Write the learners' version: solutions and hidden tests removed, quizzes as the course's settings say."""
        from labkit.course.project import open_course
        from labkit.course.project import release as do_release
        from labkit.course.source import modules
        from labkit.errors import InputError

        opened = open_course(course)
        languages = {"both": ["en", "zh"], "en": ["en"], "zh": ["zh"], None: None}
        if lang not in languages:
            raise InputError("is neither en, zh nor both", field="--lang", value=lang)
        students = [*(student or []), *(_lines(roster) if roster else [])]
        for name in [module] if module else modules():
            made = do_release(opened, name, languages[lang], students=students)
            for language, folder in made.folders.items():
                typer.echo(f"{made.module} ({language}): {folder}")
            if made.students:
                typer.echo(
                    t(f"{len(made.students)} folders in", f"{len(made.students)} 个文件夹位于")
                    + f" {opened.root / 'release-to'}"
                )

    @group.command()
    def collect(
        path: Annotated[Path, typer.Argument(help="folder, zip, LMS download or exchange")],
        module: Annotated[str | None, typer.Option(help="when the names do not tell")] = None,
        received: Annotated[
            str | None, typer.Option(help="ISO time of handing in, where the exchange does not say it")
        ] = None,
        course: Annotated[Path, typer.Option(help="the course folder")] = _HERE,
    ) -> None:
        """Take submissions in."""
        from labkit.course.collect import collect as do_collect
        from labkit.course.late import parse_time
        from labkit.course.project import open_course

        when = parse_time(received, "--received") if received else None
        result = do_collect(open_course(course), path, module, received=when)
        typer.echo(t(f"{len(result.taken)} submissions taken", f"已收集 {len(result.taken)} 份提交"))
        for name, reason in result.refused:
            typer.echo(f"  ✕ {name}: {reason}")
        if result.refused and not result.taken:
            raise typer.Exit(1)

    @group.command()
    def check(
        path: Annotated[Path, typer.Argument(help="your notebook or its folder")],
        module: Annotated[str | None, typer.Option(help="when the name does not tell")] = None,
    ) -> None:
        """Look at a notebook as grading will, before submitting it. Exit 1 when it could not be graded as it is."""
        from labkit.course.preflight import check_file

        checked = check_file(path, module)
        for finding in checked.findings:
            glyph = {"fatal": "✕", "flagged": "!", "repaired": "–"}[finding.level]
            typer.echo(f"{glyph} {finding.text}")
        if checked.fatal is not None:
            raise typer.Exit(1)
        flagged = any(f.level == "flagged" for f in checked.findings)
        word = (
            t("can be graded", "可以评分")
            if not flagged
            else t("can be graded, but look at the lines with !", "可以评分，但请看带 ! 的行")
        )
        typer.echo(f"{'!' if flagged else '✓'} {checked.module}: {word}")
        if flagged:
            raise typer.Exit(1)

    @group.command()
    def demo(
        folder: Annotated[Path, typer.Argument(help="a new folder")],
        module: Annotated[str | None, typer.Option(help="default: 03-resources")] = None,
    ) -> None:
        """Make a released course with twelve submissions of every kind of trouble."""
        from labkit.course.demo import STUDENTS, make_demo

        course, name = make_demo(folder, module)
        for student, what in STUDENTS.items():
            typer.echo(f"  {student:<5} {t(*what)}")
        typer.echo(t("Next:", "下一步：") + f" labkit course grade {name} --course {folder}")
        typer.echo(
            f"      labkit course feedback {name} --course {folder}; labkit course report {name} --course {folder}"
        )
        typer.echo(str(course.root))


def _register_after(group: typer.Typer) -> None:
    import typer

    @group.command()
    def grade(
        module: Annotated[str | None, typer.Argument(help="default: all that have submissions")] = None,
        jobs: Annotated[int, typer.Option(help="submissions at the same time", min=1, max=64)] = 2,
        timeout: Annotated[float, typer.Option(help="seconds that a cell may take", min=1)] = 30,
        resume: Annotated[
            bool, typer.Option("--resume", help="only what is new or was not finished")
        ] = False,
        student: Annotated[list[str] | None, typer.Option(help="only these; repeatable")] = None,
        on_cluster: Annotated[
            bool, typer.Option("--on-cluster", help="run each submission as a Kubernetes Job")
        ] = False,
        kubeconfig: Annotated[str | None, typer.Option(help="with --on-cluster; default: yours")] = None,
        image: Annotated[
            str, typer.Option(help="with --on-cluster: an image with labkit in it")
        ] = "labkit-grading:latest",
        course: Annotated[Path, typer.Option(help="the course folder")] = _HERE,
    ) -> None:
        """Grade every submission in a box of its own; marks go into the gradebook."""
        from labkit.course.grade import grade as do_grade
        from labkit.course.project import open_course
        from labkit.course.sandbox import Limits, isolation

        opened = open_course(course)
        box = None
        if on_cluster:
            from labkit.course.cluster_box import ClusterBox, LiveJobs

            box = ClusterBox(LiveJobs(kubeconfig), image)
        elif isolation() != "bubblewrap":
            typer.echo(
                "!! "
                + t("Submissions are not isolated on this machine: ", "本机无法隔离提交：")
                + isolation(),
                err=True,
            )
        limits = Limits(cell_seconds=timeout, wall_seconds=max(240, 8 * timeout))
        bad = 0
        for name in [_full_name(opened, module)] if module else _with_submissions(opened):
            with _Progress(_count(opened, name, student)) as progress:
                summary = do_grade(
                    opened,
                    name,
                    students=student or None,
                    jobs=jobs,
                    limits=limits,
                    resume=resume,
                    progress=progress,
                    box=box,
                )
            _print_summary(summary, typer.echo)
            bad += summary.failed
        if bad:
            raise typer.Exit(1)

    @group.command()
    def feedback(
        module: Annotated[str | None, typer.Argument(help="default: all that were graded")] = None,
        course: Annotated[Path, typer.Option(help="the course folder")] = _HERE,
    ) -> None:
        """Write a page for every learner, in their language, without hidden tests."""
        from labkit.course.feedback import write_feedback
        from labkit.course.project import open_course

        opened = open_course(course)
        for name in [_full_name(opened, module)] if module else _with_submissions(opened):
            written = write_feedback(opened, name)
            typer.echo(
                f"{name}: {len(written)} " + t("pages in", "个页面位于") + f" {opened.root / 'feedback'}"
            )

    @group.command()
    def report(
        module: Annotated[str | None, typer.Argument(help="default: all that were graded")] = None,
        course: Annotated[Path, typer.Option(help="the course folder")] = _HERE,
    ) -> None:
        """Write the class report: marks, difficulty and discrimination of each question."""
        from labkit.course.project import open_course
        from labkit.course.report import write_report

        opened = open_course(course)
        for name in [_full_name(opened, module)] if module else _with_submissions(opened):
            for path in write_report(opened, name):
                typer.echo(str(path))

    @group.command()
    def export(
        format: Annotated[str, typer.Option("--format", help="csv, moodle or canvas")] = "csv",
        output: Annotated[
            Path | None, typer.Option("--output", "-o", help="default: standard output")
        ] = None,
        course: Annotated[Path, typer.Option(help="the course folder")] = _HERE,
    ) -> None:
        """Write all marks for an LMS."""
        from labkit.course.project import open_course
        from labkit.course.report import export_marks

        text = export_marks(open_course(course), format)
        if output is None:
            typer.echo(text, nl=False)
        else:
            output.write_text(text, encoding="utf-8-sig")


def _full_name(course: Course, module: str) -> str:
    from labkit.cli.course_settings import full_name

    return full_name(course.modules(), module)


def _lines(roster: Path) -> list[str]:
    from labkit.errors import InputError

    try:
        lines = roster.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"cannot be read: {e}", file=str(roster)) from e
    return [line.strip() for line in lines if line.strip()]


def _with_submissions(course: Course) -> list[str]:
    return [m for m in course.modules() if any((course.root / "submitted").glob(f"*/{m}"))]


def _count(course: Course, module: str, students: list[str] | None) -> int:
    return len(students) if students else len(list((course.root / "submitted").glob(f"*/{module}")))


class _Progress:
    """A bar with the time left on a terminal; nothing where there is none."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._bar: Any = None

    def __enter__(self) -> _Progress:
        import sys

        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=Console(stderr=True))
            self._bar.start()
            self._task = self._bar.add_task("", total=self.total)
        return self

    def __call__(self, record: Any) -> None:
        if self._bar is not None:
            self._bar.update(self._task, advance=1, description=str(record.student))

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def _print_summary(summary: Summary, echo: Any) -> None:
    echo(
        t(
            f"{summary.module}: {summary.graded} graded, {summary.failed} not, {summary.skipped} skipped",
            f"{summary.module}：{summary.graded} 份已评分，{summary.failed} 份未评分，{summary.skipped} 份跳过",
        )
    )
    for record in summary.records:
        mark = f"{record.score:g}/{record.most:g}" if record.status == "graded" else record.reason
        notes = [f["text"] for f in record.findings if f["level"] != "fatal"]
        if record.changed:
            notes.append(t("changed labkit", "改动了 labkit"))
        echo(
            f"  {'✓' if record.status == 'graded' else '✕'} {record.student}: {mark}"
            + (f"  ({'; '.join(notes)})" if notes else "")
        )
    for line in summary.differences:
        echo("  " + t("changed mark: ", "分数变化：") + line)
