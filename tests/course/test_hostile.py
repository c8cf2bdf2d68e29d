"""Submissions that are after marks or hidden tests: what they gain, and what is said about it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from labkit.course.box import BoxResult, run_boxed
from labkit.course.feedback import write_feedback
from labkit.course.grade import grade
from labkit.course.gradebook import BusyError
from labkit.course.graded_cell import parsed, run_checks
from labkit.course.ledger import GRADED, Record
from labkit.course.project import Course, init_course, release
from labkit.course.sandbox import Limits, isolation
from labkit.course.source import build_language, read_notebook, write_notebook

from tests.course import sample

pytestmark = pytest.mark.nbgrader

NAME = sample.NAME
LIMITS = Limits(cell_seconds=4, wall_seconds=30, memory_mb=900, processes=40)
WRONG = "def add(a, b):\n    return 4\n"
#: In the sample's hidden test, and nowhere else.
SECRET = "add(-1, 1)"
#: Every open descriptor gets this text: one of them is the way to the grader.
TO_ALL = (
    "import os\nfor fd in range(3, 30):\n    try: os.write(fd, text.encode())\n    except OSError: pass\n"
)
FULL = '[{"output_type": "execute_result", "data": {"text/plain": "9"}, "metadata": {}}]'

#: student -> code in the answer cell; none of them can add. Every one must end with no points for either test.
CHEATS: dict[str, str] = {
    "reports-in-advance": WRONG
    + "text = ''.join('{\"cell\": %d, \"outputs\": [], \"changed\": []}\\n' % n for n in range(12)) + '{\"done\": true}\\n'\n"
    + TO_ALL,
    "reports-with-a-token": WRONG
    + f"text = ''.join('{{\"cell\": %d, \"token\": \"\", \"outputs\": {FULL}}}\\n' % n for n in range(12))\n"
    + TO_ALL,
    "shows-a-result": "def add(a, b):\n    import sys\n    sys.displayhook(9.0)\n    return 4\n",
    "adds-a-result": "def add(a, b):\n    import sys\n"
    "    sys.stdout._streams.outputs.append({'output_type': 'execute_result', 'data': {'text/plain': '9'}, 'metadata': {}})\n"
    "    return 4\n",
    "formats-numbers": WRONG
    + "get_ipython().display_formatter.formatters['text/plain'].for_type(float, lambda o, p, c: p.text('2.0'))\n",
    "hides-float": WRONG + "def float(x): return 2.0\ndef print(*a): pass\n",
    "hides-float-in-builtins": WRONG + "import builtins\nbuiltins.float = lambda x: 2.0\n",
    "drops-asserts": WRONG
    + "import ast\nclass Drop(ast.NodeTransformer):\n"
    "    def visit_Assert(self, node): return ast.Pass()\n"
    "    def visit_Call(self, node): return ast.Constant(2.0)\n"
    "get_ipython().ast_transformers.append(Drop())\n",
    "rewrites-cells": WRONG + "get_ipython().input_transformers_post.append(lambda lines: ['2.0\\n'])\n",
    "replaces-run-cell": WRONG
    + "import types\nget_ipython().run_cell = lambda *a, **k: types.SimpleNamespace(error_before_exec=None, error_in_exec=None)\n",
    "replaces-compile": WRONG + "import ast, builtins\nast.parse = lambda *a, **k: compile('2.0', 'x', 'exec', 1024)\n"
    "builtins.compile = lambda *a, **k: None\nbuiltins.exec = builtins.eval = lambda *a: 2.0\n",
    "replaces-the-runner": WRONG
    + "import labkit.course.graded_cell as g\ng.run_checks = lambda *a: []\ng._eval = lambda *a: 2.0\n",
    "replaces-json": WRONG + f"import json\nreal = json.dumps\njson.dumps = lambda o, **k: real({{**o, 'outputs': {FULL}}}) if 'outputs' in o else real(o, **k)\n",
    "traces": "import sys\n"
    "def add(a, b):\n"
    "    frame = sys._getframe(1)\n"
    "    def skip(f, what, arg):\n        f.f_locals['score'] = 2\n        return skip\n"
    "    frame.f_trace = skip\n    sys.settrace(skip)\n    return 4\n",
    "changes-the-score-above": "import sys\ndef add(a, b):\n    sys._getframe(1).f_globals['float'] = lambda x: 2.0\n    return 4\n",
    "handles-signals": WRONG + "import signal\nsignal.signal(signal.SIGVTALRM, lambda *a: (_ for _ in ()).throw(SystemExit))\n"
    "signal.setitimer(signal.ITIMER_VIRTUAL, 0.01, 0.01)\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\n",
    "exits-later": WRONG + "import atexit, os\natexit.register(lambda: os.write(1, b'{\"done\": true}'))\n",
    "kills-in-test": "import os, signal\ndef add(a, b): os.kill(os.getpid(), signal.SIGKILL)\n",
    "stops-in-test": "import os, signal\ndef add(a, b): os.kill(os.getpid(), signal.SIGSTOP)\n",
    "exits-in-test": "import sys\ndef add(a, b): sys.exit(0)\n",
    "stop-iteration": "def add(a, b): raise StopIteration\n",
    "raises-what-cannot-be-shown": "class E(BaseException):\n    def __str__(self): raise SystemExit\n    __repr__ = __str__\ndef add(a, b): raise E\n",
    "runs-after-fork": WRONG + "import os\nif os.fork() == 0:\n    def add(a, b): return a + b\n    import time; time.sleep(1)\n",
    "fakes-a-module": WRONG + "import sys, types\nsys.modules['json'] = sys.modules['math'] = types.ModuleType('json')\n",
    "prints-points": WRONG + "print('3 / 3 points'); print(2.0)\n",
    "closes-descriptors": WRONG + "import os\nos.closerange(0, 50)\n",
}  # fmt: skip

#: student -> code that looks for the hidden tests and prints what it finds. They can add, and are graded.
SPIES: dict[str, str] = {
    "reads-files": "import glob\nfor p in glob.glob('/in/**', recursive=True) + glob.glob('/box/**', recursive=True) + glob.glob('*'):\n"
    "    try: print(open(p, errors='replace').read())\n    except OSError: pass\n",
    "reads-memory": "import gc\nfor o in gc.get_objects(): print(repr(o)[:2000])\n",
    "reads-history": "print(In, get_ipython().history_manager.input_hist_raw)\n",
    "reads-its-parent": "import os\nfor p in (1, os.getppid()):\n    for n in ('cmdline', 'environ', 'mem', 'fd/0'):\n"
    "        try: print(open(f'/proc/{p}/{n}', 'rb').read(100000))\n        except (OSError, ValueError): pass\n",
}  # fmt: skip
#: The same while the hidden tests run.
SPIES_IN_TEST: dict[str, str] = {
    "history": "print(In, get_ipython().history_manager.input_hist_raw)",
    "line-cache": "import linecache, inspect, sys\n    print(linecache.cache)\n    print(inspect.getsource(sys._getframe(1)))",
    "frames": "import sys\n    f = sys._getframe()\n    while f:\n        print({k: str(v)[:5000] for k, v in f.f_locals.items()}); f = f.f_back",
}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A released course with all of them."""
    base = tmp_path_factory.mktemp("hostile")
    sample.write_module(base / "notebooks")
    course = init_course(base / "demo", "en")
    release(course, NAME, root=base / "notebooks")
    released = read_notebook(course.root / "release" / NAME / f"{NAME}.ipynb")
    right = "def add(a, b):\n    return a + b\n"
    spying = {s: f"def add(a, b):\n    try:\n{_indented(c)}\n    except BaseException: pass\n    return a + b" for s, c in SPIES_IN_TEST.items()}  # fmt: skip
    answers = {**CHEATS, **{s: right + c for s, c in SPIES.items()}, **spying}
    for student, code in answers.items():
        folder = course.root / "submitted" / student / NAME
        write_notebook(sample.answered(released, code), folder / f"{NAME}.ipynb")
    return course


def _indented(code: str) -> str:
    return "\n".join(
        "        " + line[4:] if line.startswith("    ") else "        " + line for line in code.split("\n")
    )


@pytest.fixture(scope="module")
def records(course: Course) -> dict[str, Record]:
    """One pass over all of them."""
    return {r.student: r for r in grade(course, NAME, jobs=2, limits=LIMITS).records}


@pytest.mark.parametrize("student", CHEATS)
def test_cheating_gains_nothing(records: dict[str, Record], student: str) -> None:
    """No points for either test, whatever was bent."""
    record = records[student]
    assert record.status == GRADED, record.reason
    assert (record.marks["add-visible"], record.marks["add-hidden"]) == (0, 0), record.notes


def test_what_was_bent_is_said(records: dict[str, Record]) -> None:
    """The record names it, for a person to look at."""
    assert "json.dumps" in records["replaces-json"].changed
    assert "sys.settrace" in records["traces"].changed or records["traces"].notes
    assert "gc.get_objects" in records["reads-memory"].changed


@pytest.mark.parametrize("student", [*SPIES, *SPIES_IN_TEST])
def test_spies_find_no_hidden_test(course: Course, records: dict[str, Record], student: str) -> None:
    """Neither in what was recorded of their outputs nor in their feedback; their sums are right, so they have the points."""
    if student in SPIES and isolation() != "bubblewrap":
        pytest.skip("without bubblewrap the box cannot hide files")
    assert records[student].status == GRADED, records[student].reason
    notebook = read_notebook(course.root / "autograded" / student / NAME / f"{NAME}.ipynb")
    said = json.dumps([c.outputs for c in notebook.cells if c.cell_type == "code"])
    assert SECRET not in said
    write_feedback(course, NAME)
    page = (course.root / "feedback" / student / NAME / f"{NAME}.html").read_text()
    assert SECRET not in page
    assert records[student].score == 3, records[student].notes


def test_a_cell_of_checks_gives_its_report_and_its_points() -> None:
    """Points as text, the report as HTML for the feedback; names go on, a hidden builtin does not."""
    source = (
        "from labkit.check import Exercise\nexercise = Exercise(2)\n"
        "with exercise.case('one', '甲') as case:\n    case.equal(answer, 3, 'the answer', '答案')\nexercise"
    )
    tree = parsed(source)
    assert tree is not None
    names: dict[str, Any] = {"answer": 3, "float": "mine"}
    (output,) = run_checks(tree, names, [])
    assert output["data"]["text/plain"] == "2"
    assert "<table" in output["data"]["text/html"] or "<div" in output["data"]["text/html"]
    assert names["float"] == "mine"
    assert names["exercise"].score == 2


def test_no_checks_in_the_box(tmp_path: Path) -> None:
    """The box gets the files beside the notebook, and not the notebook."""
    work = tmp_path / "work"
    notebook = build_language(sample.notebook(), "en")
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "add":
            cell.source = "import os; print(sorted(os.listdir()))"
    write_notebook(notebook, work / f"{NAME}.ipynb")
    (work / "numbers.txt").write_text("1")
    result = run_boxed(work, f"{NAME}.ipynb", LIMITS)
    index = next(i for i, c in enumerate(notebook.cells) if "listdir" in c.source)
    assert result.outputs[index][0]["text"].strip() == "['numbers.txt']"


@pytest.mark.skipif(isolation() != "bubblewrap", reason="without bubblewrap the box cannot hide files")
def test_an_installed_labkit_shows_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel carries banks and solutions inside the package: in the box these folders are empty."""
    import shutil

    import labkit

    package = Path(labkit.__file__).parent
    site = tmp_path / "site"
    shutil.copytree(package, site / "labkit", ignore=shutil.ignore_patterns("__pycache__"))
    for kind in ("quizzes", "notebooks"):
        (site / "labkit" / "data" / kind).mkdir(parents=True)
        (site / "labkit" / "data" / kind / "key.yaml").write_text("the key")
    monkeypatch.setattr("labkit.__file__", str(site / "labkit" / "__init__.py"))
    monkeypatch.setattr("labkit.course.sandbox.__file__", str(site / "labkit" / "course" / "box.py"))
    work = tmp_path / "work"
    notebook = build_language(sample.notebook(), "en")
    looks = f"import os; print([os.listdir({str(site / 'labkit' / 'data')!r} + '/' + k) for k in ('quizzes', 'notebooks')])"
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "add":
            cell.source = looks
    write_notebook(notebook, work / f"{NAME}.ipynb")
    result = run_boxed(work, f"{NAME}.ipynb", LIMITS)
    assert result.ended == "done", result.log
    index = next(i for i, c in enumerate(notebook.cells) if "listdir" in c.source)
    assert result.outputs[index][0]["text"].strip() == "[[], []]"


def test_a_busy_gradebook_costs_nobody_a_mark(course: Course, records: dict[str, Record]) -> None:
    """Another program has the database: at the start a plain refusal; in the middle a reason, and --resume grades."""
    other = sqlite3.connect(course.root / "gradebook.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(BusyError, match="in use"):
        grade(course, NAME, students=["prints-points"], limits=LIMITS)
    other.execute("ROLLBACK")

    def box(*args: Any, **kwargs: Any) -> BoxResult:
        lock.execute("BEGIN EXCLUSIVE")
        return run_boxed(*args, **kwargs)

    # The box runs in a thread of the grader.
    lock = sqlite3.connect(course.root / "gradebook.db", isolation_level=None, check_same_thread=False)

    release_again = sample.answered(
        read_notebook(course.root / "release" / NAME / f"{NAME}.ipynb"), "def add(a, b): return a + b"
    )
    write_notebook(release_again, course.root / "submitted" / "prints-points" / NAME / f"{NAME}.ipynb")
    found = grade(course, NAME, students=["prints-points"], limits=LIMITS, box=box).records
    lock.execute("ROLLBACK")
    lock.close()
    assert found[0].status == "failed"
    assert "--resume" in found[0].reason
    again = grade(course, NAME, resume=True, limits=LIMITS)
    assert [(r.student, r.score) for r in again.records] == [("prints-points", 3)]
