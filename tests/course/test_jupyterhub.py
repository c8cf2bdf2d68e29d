"""The JupyterHub recipe: both files are sound, and the exchange is walked as learners and instructors do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from labkit.course.collect import collect
from labkit.course.feedback import write_feedback
from labkit.course.grade import grade
from labkit.course.project import init_course, nbgrader, release
from labkit.course.source import read_notebook, write_notebook
from traitlets.config import Config

from tests.course import sample

RECIPE = Path(__file__).resolve().parents[2] / "clusters" / "jupyterhub"


def config(name: str) -> Config:
    """What a configuration file sets."""
    found = Config()
    exec(compile((RECIPE / name).read_text(), name, "exec"), {"get_config": lambda: found})
    return found


def test_the_hub_gives_formgrader_to_instructors_only() -> None:
    """Every role speaks of a service and groups that exist; no learner is among the instructors; the service works in
    the course folder, as the grader, in this course's name."""
    hub: Any = config("jupyterhub_config.py")
    course = config("nbgrader_config.py")["CourseDirectory"]["course_id"]
    (service,) = hub.JupyterHub.services
    assert service["name"] == course
    assert service["cwd"].endswith(f"/{course}")
    groups = hub.JupyterHub.load_groups
    for role in hub.JupyterHub.load_roles:
        assert set(role.get("groups", [])) <= set(groups)
        assert set(role.get("services", [])) <= {course}
    access = {g for r in hub.JupyterHub.load_roles if "groups" in r for g in r["groups"]}
    assert access == {f"formgrade-{course}"}
    instructors, learners = (set(groups[f"{k}-{course}"]["users"]) for k in ("formgrade", "nbgrader"))
    assert instructors
    assert learners
    assert not instructors & learners
    assert hub.Authenticator.allowed_users == instructors | learners | {service["user"]}


def test_nbgraders_settings_exist() -> None:
    """Every class and trait of the file is one that nbgrader has, with a value that it takes."""
    from nbgrader import coursedir
    from nbgrader.exchange.default import Exchange

    classes = {"CourseDirectory": coursedir.CourseDirectory, "Exchange": Exchange}
    for name, values in config("nbgrader_config.py").items():
        for trait, value in values.items():
            assert trait in classes[name].class_trait_names(config=True), (name, trait)
            classes[name].class_traits()[trait].validate(None, value)


def test_the_readme_names_what_exists() -> None:
    """Files and options of its commands."""
    text = (RECIPE / "README.md").read_text()
    for path in re.findall(r"(?:clusters|tests)/[\w./-]+", text):
        assert (RECIPE.parents[1] / path.rstrip(".")).exists(), path


@pytest.mark.nbgrader
def test_from_release_to_feedback_through_the_exchange(tmp_path: Path) -> None:
    """release_assignment, fetch, submit, collect, grade, release_feedback, fetch_feedback: the page arrives."""
    sample.write_module(tmp_path / "notebooks")
    course = init_course(tmp_path / "hub", "en")
    shared, home = tmp_path / "exchange", tmp_path / "home"
    shared.mkdir()
    home.mkdir()
    file = course.root / "nbgrader_config.py"
    # The README's own command.
    text = re.sub(r"(?m)^c.Exchange.root = .*", f"c.Exchange.root = {str(shared)!r}", file.read_text())
    file.write_text(text)
    theirs = (RECIPE / "nbgrader_config.py").read_text().replace("/srv/nbgrader/exchange", str(shared))
    (home / "nbgrader_config.py").write_text(theirs.replace('"scheduler-lab"', '"hub"'))

    def learner(*arguments: str) -> None:
        command = [sys.executable, "-m", "nbgrader", *arguments, sample.NAME]
        environment = {**os.environ, "USER": "ann", "JUPYTERHUB_USER": "ann"}
        run = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr

    release(course, "42", root=tmp_path / "notebooks")
    nbgrader(course, "release_assignment", sample.NAME)
    learner("fetch_assignment")
    notebook = home / "hub" / sample.NAME / f"{sample.NAME}.ipynb"
    write_notebook(sample.answered(read_notebook(notebook), "def add(a, b): return a + b"), notebook)
    learner("submit")
    # Taken from the exchange as a whole: what was released is no submission.
    (taken,) = collect(course, shared).taken
    (record,) = grade(course, sample.NAME).records
    assert (record.student, record.score) == (taken[0], 3)
    write_feedback(course, sample.NAME)
    nbgrader(course, "release_feedback", sample.NAME)
    learner("fetch_feedback")
    (page,) = home.rglob("*.html")
    assert "3</b> / 4" in page.read_text()
