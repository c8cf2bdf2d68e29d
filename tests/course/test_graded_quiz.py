"""Quizzes that count: nothing of the key is shipped, the stored answers are marked in grading, by both graders alike."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from labkit.course.grade import grade
from labkit.course.graded_cells import quiz_cells
from labkit.course.ledger import GRADED, Record
from labkit.course.project import Course, init_course, nbgrader, open_course, put_source, release
from labkit.course.quiz_points import questions_of
from labkit.course.settings import changed, write_settings
from labkit.course.source import modules, read_notebook, write_notebook
from labkit.course.strip import strip
from labkit.course.text import from_text
from labkit.errors import InputError
from labkit.quiz.bank import bank_names, find_bank
from labkit.quiz.graded import Terms, course_bank, hidden_bank, opaque_id, terms_of
from labkit.quiz.marking import mark
from labkit.quiz.model import Bank
from labkit.quiz.session import Session, question_scores, score
from labkit.widgets.quiz import QuizController

from tests.quiz import banks

NAME = "43-quiz"

MODULE = """%% prose title
# Quiz

Three questions.

%% zh
# 测验

三个问题。

%% code ask
from labkit.widgets.quiz import quiz

quiz("kinds", "one", "many", "order", "match")

%% tests one-question points=1
from labkit.quiz import score

score("kinds", "one", points=1)

%% tests three-questions points=6
from labkit.quiz import score

score("kinds", "many", "order", "match", points=6)
"""


def write_module(root: Path, text: str = MODULE, name: str = NAME) -> None:
    """The module above as `root/<name>/<name>.ipynb`."""
    write_notebook(from_text(text), root / name / f"{name}.ipynb")


def new_course(base: Path, *, quiz: str = "graded", variants: bool = False) -> Course:
    """A course whose bank `kinds` is the instructor's own."""
    write_module(base / "notebooks")
    course = init_course(base / "demo", "en", quiz=quiz, variants=variants)
    (course.root / "quizzes").mkdir()
    (course.root / "quizzes" / "kinds.yaml").write_text(banks.TEXT, encoding="utf-8")
    return course


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Released in both languages."""
    course = new_course(tmp_path_factory.mktemp("graded"))
    release(course, "43", ["en", "zh"], root=course.root.parent / "notebooks")
    return course


def learner(course: Course, student: str, answers: dict[str, Any], lang: str = "en") -> Path:
    """What a learner does: take the release, answer in the widget's session, hand the folder in."""
    folder = course.root / "submitted" / student / NAME
    shutil.copytree(course.root / ("release" if lang == "en" else "release-zh") / NAME, folder)
    session = Session("kinds", folder=folder, student=student)
    assert session.mode == "graded"
    for question, response in answers.items():
        session.submit(question, response)
    return folder


def right(course: Course) -> dict[str, Any]:
    """Right answers in the ids that were shipped, found with the course's secret."""
    bank, terms = course_bank("kinds", course.root), terms_of(course.root)
    order, match = bank.question("order"), bank.question("match")
    from labkit.quiz.present import right_id

    return {
        "one": "a",
        "many": ["a", "b"],
        "order": [opaque_id(order, i.id, terms) for i in order.items],
        "match": {p.id: opaque_id(match, right_id(p.id, match), terms) for p in match.pairs},
    }


def texts_of_key() -> set[str]:
    """Everything in the tests' bank that only the instructor may see."""
    return key_texts(course_bank_of_tests())


def key_texts(bank: Bank) -> set[str]:
    """Explanations, corrections, reasons and solutions."""
    found: set[str] = set()
    for question in bank.questions:
        corrected = [text for c in question.corrections for text in (c.source, c.fact)]
        for text in (question.explanation, *corrected):
            found |= {text.en, text.zh} if text else set()
        for part in (
            *getattr(question, "options", []),
            *getattr(question, "items", []),
            *getattr(question, "pairs", []),
            *getattr(question, "mistakes", []),
        ):
            if part.explain is not None:
                found |= {part.explain.en, part.explain.zh}
        found |= {getattr(question, "solution", "")}
    return {text.strip() for text in found if len(text.strip()) > 4 or text == "是甲" or text == "不是乙"}


def course_bank_of_tests() -> Any:
    """The bank of the tests, parsed."""
    import tempfile

    from labkit.quiz.bank import load_bank

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kinds.yaml").write_text(banks.TEXT, encoding="utf-8")
        return load_bank(Path(folder) / "kinds.yaml")


def test_the_release_holds_the_questions_and_no_key(course: Course) -> None:
    """In both languages `quiz-kinds.json` is there; no explanation, no solution, no word `correct` in any file."""
    assert len(texts_of_key()) == 9
    for name in ("release", "release-zh"):
        folder = course.root / name / NAME
        shipped = (folder / "quiz-kinds.json").read_text(encoding="utf-8")
        assert [q["id"] for q in json.loads(shipped)["questions"]] == [
            q.id for q in course_bank_of_tests().questions
        ]
        for path in folder.rglob("*"):
            text = path.read_text(encoding="utf-8")
            for secret in (
                *texts_of_key(),
                '"correct"',
                '"explain',
                '"evidence"',
                '"goal"',
                course.settings.secret,
            ):
                assert secret not in text, (path.name, secret)
        assert not list(folder.rglob("*.yaml"))


@pytest.mark.parametrize("variants", [False, True])
@pytest.mark.parametrize("name", bank_names())
def test_labkits_own_banks_ship_without_explanations(name: str, variants: bool) -> None:
    """No explanation, no correction, no reason of an option, no solution of any question of any bank."""
    import msgspec

    bank = find_bank(name)
    shipped = hidden_bank(bank, Terms("c", "graded", variants, "secret"))
    text = msgspec.json.encode(shipped).decode()
    inside = {msgspec.json.encode(secret).decode()[1:-1] for secret in key_texts(bank)}
    assert len(inside) > 100
    assert not [secret for secret in inside if secret in text]


def test_ids_of_items_and_pairs_tell_nothing(course: Course) -> None:
    """Neither the ids that practice shows nor anything a learner can compute from the file: another secret, other ids,
    and in the order of the ids."""
    bank, terms = course_bank("kinds", course.root), terms_of(course.root)
    shown = {q.id: q for q in hidden_bank(bank, terms).questions}
    practised = {
        q.id: q for q in hidden_bank(bank, type(terms)(terms.course_id, "graded", False, "another")).questions
    }
    from labkit.quiz.present import right_id

    for id, own in (
        ("order", [i.id for i in bank.question("order").items]),
        ("match", [right_id(p.id, bank.question("match")) for p in bank.question("match").pairs]),
    ):
        ids = [c.id for c in shown[id].choices]
        assert ids == sorted(ids)
        assert not set(ids) & {*own, *(c.id for c in practised[id].choices)}


def test_answers_in_practice_ids_gain_nothing(course: Course, tmp_path: Path) -> None:
    """The ids of right-hand sides in practice follow from the pairs; in a graded course they are unknown ids."""
    from labkit.quiz.answers import Answers
    from labkit.quiz.present import right_id

    bank = course_bank("kinds", course.root)
    match = bank.question("match")
    practice = {p.id: right_id(p.id, match) for p in match.pairs}
    assert mark(match, practice, "s").fraction == 1
    seed = terms_of(course.root).seed("kinds", "eve")
    answers = Answers("kinds", tmp_path / "answers")
    answers.add("match", practice, seed, 1.0)
    answers.add("order", [i.id for i in bank.question("order").items], seed, 1.0)
    found = question_scores("kinds", "match", "order", folder=tmp_path, student="eve", course=course.root)
    assert found is not None
    assert [s.fraction for s in found] == [0, 0]


#: student -> (what is answered of the right ones or instead, language, points of both cells)
STUDENTS: dict[str, tuple[dict[str, Any], str, float, float]] = {
    "all": ({}, "en", 1, 6),
    "all-zh": ({}, "zh", 1, 6),
    "half": ({"one": "b", "many": ["a"], "match": None}, "en", 0, 3),
    "nothing": ({"one": None, "many": None, "order": None, "match": None}, "en", 0, 0),
}


@pytest.fixture(scope="module")
def records(course: Course) -> dict[str, Record]:
    """All of them and some trouble, graded."""
    for student, (instead, lang, *_) in STUDENTS.items():
        answers = {**right(course), **instead}
        learner(course, student, {q: a for q, a in answers.items() if a is not None}, lang)
    folder = learner(course, "forger", {"one": "b"})
    stored = json.loads((folder / "answers" / "kinds.json").read_text())
    stored["attempts"][0]["fraction"] = 1.0
    (folder / "answers" / "kinds.json").write_text(json.dumps(stored))
    (folder / "quiz-kinds.json").write_text("{}")
    (folder / "quiz-kinds.yaml").write_text(banks.TEXT.replace("correct: true", "correct: false"))
    folder = learner(course, "broken", {"one": "a"})
    (folder / "answers" / "kinds.json").write_text('{"attempts": [{"question": 3')
    folder = learner(course, "changed-mind", {"one": "a"})
    Session("kinds", folder=folder).submit("one", "b")
    folder = learner(course, "redefines", {"one": "b"})
    notebook = read_notebook(folder / f"{NAME}.ipynb")
    for cell in notebook.cells:
        if cell["id"] == "ask":
            cell.source = "import labkit.quiz\nlabkit.quiz.score = lambda *a, **k: 1.0"
    write_notebook(notebook, folder / f"{NAME}.ipynb")
    return {r.student: r for r in grade(course, NAME, jobs=2).records}


@pytest.mark.nbgrader
@pytest.mark.parametrize("student", STUDENTS)
def test_stored_answers_get_their_points(records: dict[str, Record], student: str) -> None:
    """By cell, scaled to the cell's points, in either language."""
    *_, one, three = STUDENTS[student]
    assert records[student].status == GRADED, records[student].reason
    assert records[student].marks == {"one-question": one, "three-questions": three}


@pytest.mark.nbgrader
def test_what_is_missing_is_told_by_question(records: dict[str, Record]) -> None:
    """The note of the cell names the questions, in the learner's language, not the right answers."""
    assert records["half"].notes["three-questions"] == "many: 50%; match: not answered"
    assert "three-questions" not in records["all-zh"].notes


@pytest.mark.nbgrader
@pytest.mark.parametrize("student", ["forger", "broken", "changed-mind", "redefines"])
def test_trouble_gains_nothing_and_stops_nobody(records: dict[str, Record], student: str) -> None:
    """A forged fraction, an own key beside the notebook, a damaged file, a later wrong answer, another `score`."""
    assert records[student].status == GRADED, records[student].reason
    assert records[student].score == 0


@pytest.mark.nbgrader
def test_plain_nbgrader_gives_the_same_marks(course: Course, records: dict[str, Record]) -> None:
    """`nbgrader autograde` finds the key from where it works, and comes to the same points."""
    from nbgrader.api import Gradebook

    for student in ("half", "all-zh", "forger"):
        nbgrader(course, "autograde", NAME, "--student", student, "--force")
        with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as book:
            grades = book.find_submission_notebook(NAME, NAME, student).grades
            assert {g.cell.name: g.auto_score for g in grades} == records[student].marks


@pytest.mark.nbgrader
def test_a_corrected_key_reaches_those_already_graded(course: Course, records: dict[str, Record]) -> None:
    """--resume takes up everybody again when the bank changed, nobody when it did not."""
    again = grade(course, NAME, resume=True)
    assert (again.graded, again.skipped) == (0, len(records))
    path = course.root / "quizzes" / "kinds.yaml"
    before = path.read_text(encoding="utf-8")
    a, b = "explain: {en: A it is, zh: 是甲}, correct: true}", "explain: {en: B is not, zh: 不是乙}"
    assert a in before
    path.write_text(
        before.replace(a, a.replace(", correct: true", "")).replace(b, b + ", correct: true"),
        encoding="utf-8",
    )
    try:
        found = {r.student: r for r in grade(course, NAME, resume=True).records}
        assert found["changed-mind"].marks["one-question"] == 1
        assert found["all"].marks["one-question"] == 0
        assert found["all"].before["score"] == 7
    finally:
        path.write_text(before, encoding="utf-8")


def test_a_learner_sees_saved_and_no_verdict(
    course: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Widget and score cell on the learner's machine: stored, marked later; the score cell says why it shows 0."""
    folder = tmp_path / NAME
    shutil.copytree(course.root / "release" / NAME, folder)
    widget = QuizController(Session("kinds", ["one", "match"], folder=folder, student="ann"))
    widget.handle("one:choice", "a")
    widget.handle("one:submit", None)
    shown = json.dumps(widget.view(), ensure_ascii=False)
    assert "Saved. It is marked after the deadline." in shown
    assert "Prove" not in shown
    for secret in texts_of_key():
        assert secret not in shown
    assert score("kinds", "one", folder=folder) == 0
    assert "marked after the deadline" in capsys.readouterr().out


def test_practice_ships_an_own_bank_whole_and_marks_at_once(tmp_path: Path) -> None:
    """Without graded mode the instructor's own bank comes beside the notebook, and `score` marks there."""
    course = new_course(tmp_path, quiz="practice")
    put_source(course, "43", root=tmp_path / "notebooks")
    folder = course.root / "source" / NAME
    assert not (folder / "quiz-kinds.json").exists()
    session = Session("kinds", folder=folder, student="ann")
    assert session.mode == "practice"
    assert session.submit("one", "a").fraction == 1
    assert score("kinds", "one", points=3, folder=folder) == 3


def test_labkits_own_banks_need_no_copy_in_practice(tmp_path: Path) -> None:
    """A module that uses an installed bank gets no file in practice and the questions in graded mode."""
    write_module(
        tmp_path / "notebooks",
        MODULE.replace('"kinds"', '"part3"').replace('"one", "many", "order", "match"', "8"),
    )
    course = init_course(tmp_path / "demo", "en")
    put_source(course, "43", root=tmp_path / "notebooks")
    assert [p.name for p in (course.root / "source" / NAME).iterdir()] == [f"{NAME}.ipynb"]
    write_settings(course.root, changed(course.root, course.settings, quiz="graded"))
    put_source(open_course(course.root), "43", root=tmp_path / "notebooks")
    text = (course.root / "source" / NAME / "quiz-part3.json").read_text(encoding="utf-8")
    assert '"correct"' not in text
    assert len(json.loads(text)["questions"]) > 5


def test_faulty_settings_are_told_by_field(tmp_path: Path) -> None:
    """A wrong mode, variants in practice, a field that nobody knows, an unknown bank or question."""
    with pytest.raises(InputError, match="quiz is practice or graded"):
        init_course(tmp_path / "a", quiz="exam")
    with pytest.raises(InputError, match="variants need quiz: graded"):
        init_course(tmp_path / "b", variants=True)
    course = init_course(tmp_path / "c")
    (course.root / "course.json").write_text('{"course_id": "c", "language": "en", "quizz": "graded"}')
    with pytest.raises(InputError, match="quizz"):
        open_course(course.root)
    course = new_course(tmp_path / "d")
    write_module(tmp_path / "d" / "notebooks", MODULE.replace('"kinds"', '"no-such-bank"'))
    with pytest.raises(InputError, match="is no question bank"):
        put_source(course, "43", root=tmp_path / "d" / "notebooks")
    with pytest.raises(InputError, match="is no question"):
        question_scores("kinds", "none", folder=tmp_path, student="x", course=course.root)


def test_a_released_cell_is_the_learners_to_run(course: Course) -> None:
    """The score cell is locked in the release and the same as in the source: there is nothing hidden in it."""
    released = read_notebook(course.root / "release" / NAME / f"{NAME}.ipynb")
    ours = strip(read_notebook(course.root / "source" / NAME / f"{NAME}.ipynb"))
    assert [c.source for c in released.cells] == [c.source for c in ours.cells]


ASKS_ONLY = """%% prose title
# Quiz and exercise

%% zh
# 测验与练习

%% code ask
from labkit.widgets.quiz import quiz

quiz("kinds", "one", "many", "order")

%% solution double
def double(x):
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION

%% tests double-visible points=2
assert double(2) == 4
"""


@pytest.mark.nbgrader
def test_questions_that_a_module_asks_count_beside_its_exercises(tmp_path: Path) -> None:
    """From the instructor's bank to a learner's feedback: the release gets a cell of points and no key, the answers
    are marked by the key at home, quiz and exercise are in one gradebook, and the page in Chinese holds no key."""
    from labkit.course.feedback import write_feedback
    from nbgrader.api import Gradebook

    course = new_course(tmp_path)
    write_module(tmp_path / "notebooks", ASKS_ONLY)
    release(course, "43", ["en", "zh"], root=tmp_path / "notebooks")
    for name in ("release", "release-zh"):
        released = read_notebook(course.root / name / NAME / f"{NAME}.ipynb")
        cell = released.cells[-1]
        assert cell.metadata["nbgrader"]["grade_id"] == "quiz-kinds"
        assert cell.source.endswith('score("kinds", "one", "many", "order", points=4)')
    answers = {k: v for k, v in right(course).items() if k != "match"}
    folder = learner(course, "li", {**answers, "many": ["a"]}, "zh")
    notebook = read_notebook(folder / f"{NAME}.ipynb")
    for cell in notebook.cells:
        if cell["id"] == "double":
            cell.source = "def double(x): return x + x"
    write_notebook(notebook, folder / f"{NAME}.ipynb")
    (record,) = grade(course, NAME).records
    assert record.marks == {"double-visible": 2, "quiz-kinds": 3}
    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as book:
        assert book.find_submission(NAME, "li").score == 5
    (path,) = write_feedback(course, NAME)
    page = path.read_text(encoding="utf-8")
    assert 'lang="zh-CN"' in page
    assert not [secret for secret in texts_of_key() if secret in page]
    assert "many: 50%" in page


def test_practice_adds_no_points(tmp_path: Path) -> None:
    """Nor do questions that a cell scores already, in graded mode."""
    course = new_course(tmp_path, quiz="practice")
    write_module(tmp_path / "notebooks", ASKS_ONLY)
    put_source(course, "43", root=tmp_path / "notebooks")
    cells = read_notebook(course.root / "source" / NAME / f"{NAME}.ipynb").cells
    assert [c["id"] for c in cells] == ["title", "ask", "double", "double-visible"]
    graded = new_course(tmp_path / "graded")
    put_source(graded, "43", root=tmp_path / "graded" / "notebooks")
    cells = read_notebook(graded.root / "source" / NAME / f"{NAME}.ipynb").cells
    assert [c["id"] for c in cells if c["id"].startswith("quiz-")] == []


@pytest.mark.parametrize("module", modules())
def test_every_module_can_count_its_questions(tmp_path: Path, module: str) -> None:
    """In a graded course each question of each module is scored exactly once, and is shipped without key."""
    course = init_course(tmp_path / "demo", "en", quiz="graded")
    put_source(course, module)
    source = read_notebook(course.root / "source" / module / f"{module}.ipynb")
    asked = set(questions_of([c.source for c in source.cells if c.cell_type == "code"], "quiz", course.root))
    scored = [(bank, id) for bank, ids, _ in quiz_cells(source).values() for id in ids]
    assert sorted(scored) == sorted(asked)
    assert asked
    for bank in {bank for bank, _ in asked}:
        assert (course.root / "source" / module / f"quiz-{bank}.json").is_file()
