"""The wheel holds everything that an installed lab needs, and the two lists of requirements agree."""

from __future__ import annotations

import re
import tomllib
import zipfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
#: conda's name -> PyPI's.
RENAMED = {
    "msgspec-python": "msgspec",
    "prometheus_client": "prometheus-client",
    "python-kubernetes": "kubernetes",
}


def requirements(lines: list[str]) -> dict[str, str]:
    """Name -> version range."""
    found = {}
    for line in lines:
        name, version = re.match(r"([A-Za-z0-9_-]+)(.*)", line).groups()  # type: ignore[union-attr]
        found[RENAMED.get(name, name)] = version
    return found


def test_environment_yml_says_what_pyproject_says() -> None:
    """One list for pip, one for conda."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    named = requirements([d for d in conda if isinstance(d, str) and d != "pip"])
    assert named.pop("python") == project["requires-python"]
    assert named == requirements(project["dependencies"])


def test_the_wheel_can_start_a_course(tmp_path: Path) -> None:
    """Notebooks, question banks, clusters and the widgets' assets are inside."""
    from hatchling.builders.wheel import WheelBuilder

    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = set(zipfile.ZipFile(path).namelist())
    for kind in ("notebooks", "quizzes", "clusters"):
        for file in (ROOT / kind).rglob("*"):
            if file.suffix in (".ipynb", ".yaml", ".md") and ".ipynb_checkpoints" not in file.parts:
                assert f"labkit/data/{file.relative_to(ROOT)}" in names
    assert {"labkit/widgets/assets/lab.js", "labkit/widgets/assets/lab.css"} <= names
