"""What a class hands in, in every shape, ends in submitted/<student>/<module>/; nothing gets out of it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from labkit.course.collect import collect
from labkit.course.project import Course, init_course, put_source
from labkit.errors import InputError

from tests.course import sample

FILE = f"{sample.NAME}.ipynb"


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A course with two modules."""
    for name in (sample.NAME, "43-more"):
        sample.write_module(tmp_path / "notebooks", name)
    course = init_course(tmp_path / "course", "en")
    for name in (sample.NAME, "43-more"):
        put_source(course, name, root=tmp_path / "notebooks")
    return course


def put(path: Path, text: str = "{}") -> None:
    """A file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("paths", "taken"),
    [
        ([f"ann/{FILE}", f"王芳/{FILE}"], [("ann", sample.NAME), ("王芳", sample.NAME)]),
        (
            [f"ann/{sample.NAME}/{FILE}", "ann/43-more/43-more.ipynb"],
            [("ann", sample.NAME), ("ann", "43-more")],
        ),
        ([f"Ann Lee_12345_assignsubmission_file_/{FILE}"], [("Ann Lee", sample.NAME)]),
        ([f"leeann_LATE_77_8888_{sample.NAME}-1.ipynb"], [("leeann", sample.NAME)]),
        ([f"ann_{FILE}", f"bo_{sample.NAME} (2).ipynb"], [("ann", sample.NAME), ("bo", sample.NAME)]),
        ([f"ann+{sample.NAME}+2030-01-02 03:04:05.0 UTC+abc/{FILE}"], [("ann", sample.NAME)]),
        ([f"everything/ann/{FILE}"], [("ann", sample.NAME)]),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_layouts(
    course: Course, tmp_path: Path, paths: list[str], taken: list[tuple[str, str]], zipped: bool
) -> None:
    """Folder or zip: the same students and modules."""
    root = tmp_path / "in"
    for path in paths:
        put(root / path)
    if zipped:
        with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
            for path in paths:
                archive.write(root / path, path)
        root = tmp_path / "in.zip"
    result = collect(course, root)
    assert sorted(result.taken) == sorted(taken)
    assert result.refused == []
    for student, module in taken:
        assert (course.root / "submitted" / student / module / f"{module}.ipynb").is_file()


def test_the_newest_submission_counts(course: Course, tmp_path: Path) -> None:
    """Of two submissions in the exchange the later one stays."""
    for time, text in (("2030-01-02 09:00:00", "new"), ("2030-01-01 09:00:00", "old")):
        put(tmp_path / "in" / f"ann+{sample.NAME}+{time}.0 UTC" / FILE, text)
    collect(course, tmp_path / "in")
    assert (course.root / "submitted" / "ann" / sample.NAME / FILE).read_text() == "new"


def test_hostile_archives_stay_inside(course: Course, tmp_path: Path) -> None:
    """Paths that lead outside and links are refused by name, the rest is taken."""
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr("../../evil.ipynb", "{}")
        archive.writestr("/abs/evil.ipynb", "{}")
        archive.writestr(f"ann/{FILE}", "{}")
        link = zipfile.ZipInfo("ann/link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    result = collect(course, tmp_path / "in.zip")
    assert [name for name, _ in result.refused] == ["../../evil.ipynb", "/abs/evil.ipynb", "ann/link"]
    assert result.taken == [("ann", sample.NAME)]
    assert not list(tmp_path.rglob("evil*"))


def test_what_cannot_be_told_is_refused_with_a_reason(course: Course, tmp_path: Path) -> None:
    """A notebook without a student's name, a folder of no module, a missing path."""
    put(tmp_path / "in" / "Untitled.ipynb")
    put(tmp_path / "in" / "notes.pdf")
    put(tmp_path / "in" / "bo" / "homework.ipynb")
    result = collect(course, tmp_path / "in")
    assert result.taken == []
    assert {name for name, _ in result.refused} == {"Untitled.ipynb", "notes.pdf", "bo"}
    assert collect(course, tmp_path / "in" / "bo", sample.NAME).refused
    with pytest.raises(InputError, match="does not exist"):
        collect(course, tmp_path / "nothing")
