"""Submissions into `submitted/<student>/<module>/`, from whatever the class handed in.

Understood are: a folder or zip of student folders, nbgrader's exchange, Moodle's download
(`Name_123_assignsubmission_file_/...`), Canvas's (`namesurname_123_456_03-resources.ipynb`), and single notebooks
called `<student>_<module>.ipynb`. Archives are unpacked without trusting their paths or sizes. When something was
handed in is what the exchange or the instructor says, never a file that a learner uploaded.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from labkit.course.late import parse_time, write_submitted
from labkit.course.project import Course
from labkit.errors import InputError

LARGEST_MB = 2000
LARGEST_FILE_MB = 100
_MOODLE = re.compile(r"^(?P<name>.+?)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)_?$")
_CANVAS = re.compile(r"^(?P<name>[^_]+)_(?:LATE_)?(?P<id>\d+)_\d+_(?P<file>.+)$")
_EXCHANGE = re.compile(
    r"^(?P<name>.+?)\+(?P<module>[^+]+)\+(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^+]*)(?:\+.*)?$"
)
_COPY = re.compile(r"(?:-\d+|\s*\(\d+\))?$")


@dataclass
class Collected:
    """What was taken: (student, module), and what was not, with the reason."""

    taken: list[tuple[str, str]] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)


def collect(
    course: Course, path: Path, module: str | None = None, *, received: datetime | None = None
) -> Collected:
    """Copy submissions in. A newer one of the same student replaces the older. Raises InputError for no such path.

    `received` is when they were handed in, for all that carry no time of the exchange.
    """
    if not path.exists():
        raise InputError("does not exist", file=str(path))
    result = Collected()
    with tempfile.TemporaryDirectory(prefix="labkit-collect-") as temporary:
        root = path
        if path.is_file():
            root = Path(temporary) / "in"
            root.mkdir()
            if zipfile.is_zipfile(path):
                _unpack(path, root, result)
            else:
                shutil.copyfile(path, root / path.name)
        _Taker(course, module, result, received).take(root)
    return result


def _unpack(archive: Path, root: Path, result: Collected) -> None:
    """Plain files only, inside `root`, within the limits."""
    room = LARGEST_MB * 1_000_000
    with zipfile.ZipFile(archive) as source:
        for info in source.infolist():
            name = info.filename.replace("\\", "/")
            parts = [p for p in name.split("/") if p not in ("", ".")]
            is_link = (info.external_attr >> 16) & 0o170000 == 0o120000
            if info.is_dir():
                continue
            if ".." in parts or name.startswith("/") or is_link:
                result.refused.append((name, "its path leads outside, or it is a link"))
                continue
            if info.file_size > LARGEST_FILE_MB * 1_000_000 or info.file_size > room:
                result.refused.append((name, f"larger than {LARGEST_FILE_MB} MB"))
                continue
            target = root.joinpath(*parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            with source.open(info) as entry, target.open("wb") as out:
                left = info.file_size
                while left > 0 and (part := entry.read(min(left, 1 << 20))):
                    out.write(part)
                    left -= len(part)
            room -= info.file_size
            if name.endswith(".zip") and zipfile.is_zipfile(target):
                inner = target.with_suffix("")
                inner.mkdir(exist_ok=True)
                _unpack(target, inner, result)
                target.unlink()


class _Taker:
    def __init__(
        self, course: Course, module: str | None, result: Collected, received: datetime | None
    ) -> None:
        self.course, self.module, self.result, self.received = course, module, result, received
        self.known = course.modules()
        if module is not None and module not in self.known:
            raise InputError(
                "is no module of this course", field="--module", value=module, hint=", ".join(self.known)
            )

    def take(self, root: Path) -> None:
        """Everything below `root`. Of an exchange that is what came in, not what was released."""
        for inbound in (root / self.course.course_id / "inbound", root / "inbound"):
            if inbound.is_dir() and not inbound.is_symlink():
                self.take(inbound)
                return
        entries = sorted(
            p for p in root.iterdir() if not p.name.startswith((".", "__MACOSX")) and not p.is_symlink()
        )
        folders = [p for p in entries if p.is_dir()]
        # An archive often has one folder around everything.
        if len(entries) == 1 and len(folders) == 1 and not self._is_submission(folders[0]):
            self.take(folders[0])
            return
        for entry in sorted(entries, key=self._age):
            if entry.is_dir():
                self._folder(entry)
            elif entry.suffix == ".ipynb":
                self._file(entry)
            else:
                self.result.refused.append((entry.name, "no notebook"))

    @staticmethod
    def _age(path: Path) -> tuple[str, str]:
        match = _EXCHANGE.match(path.name)
        return (match["time"] if match else "", path.name)

    def _is_submission(self, folder: Path) -> bool:
        named = _MOODLE.match(folder.name) or _EXCHANGE.match(folder.name)
        return bool(named) or any(folder.glob("*.ipynb")) or any((folder / m).is_dir() for m in self.known)

    def _folder(self, folder: Path) -> None:
        exchange, moodle = _EXCHANGE.match(folder.name), _MOODLE.match(folder.name)
        if exchange:
            self._put(exchange["name"], exchange["module"], folder, _time(exchange["time"]))
            return
        student = moodle["name"] if moodle else folder.name
        inside = [m for m in self.known if (folder / m).is_dir()]
        for name in inside:
            self._put(student, name, folder / name)
        if not inside:
            self._put(student, self.module or self._module_of(folder), folder)

    def _file(self, file: Path) -> None:
        canvas = _CANVAS.match(file.name)
        stem = _COPY.sub("", Path(canvas["file"]).stem if canvas else file.stem)
        student = canvas["name"] if canvas else ""
        module = self.module or next((m for m in self.known if stem == m or stem.endswith(m)), None)
        if not student and module is not None and stem.endswith(module):
            student = stem[: -len(module)].strip("_-+ ")
        if not student:
            self.result.refused.append(
                (file.name, "the name does not tell the student: <student>_<module>.ipynb")
            )
            return
        with tempfile.TemporaryDirectory() as temporary:
            shutil.copyfile(file, Path(temporary) / f"{module or stem}.ipynb")
            self._put(student, module, Path(temporary))

    def _module_of(self, folder: Path) -> str | None:
        for file in sorted(folder.rglob("*.ipynb")):
            stem = _COPY.sub("", file.stem)
            if stem in self.known:
                return stem
        return self.known[0] if len(self.known) == 1 else None

    def _put(self, student: str, module: str | None, folder: Path, when: datetime | None = None) -> None:
        student = student.strip()
        if module is None or module not in self.known:
            self.result.refused.append((student, "it belongs to no module of this course that can be told"))
            return
        if not student or "/" in student or student.startswith(".") or "\\" in student:
            self.result.refused.append((student or folder.name, "not usable as a student's name"))
            return
        target = self.course.root / "submitted" / student / module
        if target.exists():
            shutil.rmtree(target)
        for file in sorted(folder.rglob("*")):
            relative = file.relative_to(folder)
            if file.is_symlink() or not file.is_file() or any(p.startswith(".") for p in relative.parts):
                continue
            if str(relative) == "timestamp.txt":
                continue
            (target / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target / relative)
        target.mkdir(parents=True, exist_ok=True)
        handed_in = when or self.received
        if handed_in is not None:
            write_submitted(target, handed_in)
        if (student, module) not in self.result.taken:
            self.result.taken.append((student, module))


def _time(text: str) -> datetime | None:
    """The time in an exchange folder's name; None for one that is not understood."""
    try:
        return parse_time(text, "")
    except InputError:
        return None
