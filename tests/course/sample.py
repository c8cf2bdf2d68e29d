"""A tiny module of the course's shape, independent of the real ones: 4 points in two test cells and a text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labkit.course.source import write_notebook
from labkit.course.text import from_text

NAME = "42-sample"

TEXT = '''%% prose title
# Sample

Add two numbers.

%% zh
# 示例

把两个数相加。

%% code setup
from pathlib import Path
numbers = [1, 2, 3]
Path("numbers.txt").read_text().strip()

%% solution add
def add(a, b):
    """The sum."""
    ### BEGIN SOLUTION
    return a + b
    ### END SOLUTION

%% tests add-visible points=1
assert add(1, 2) == 3, "add(1, 2) must be 3"

%% tests add-hidden points=2
score = 0
### BEGIN HIDDEN TESTS
score = (add(-1, 1) == 0) + (add("a", "b") == "ab")
### END HIDDEN TESTS
float(score)

%% manual why points=1
Why? / 为什么？
### BEGIN SOLUTION
Because. / 因为。
### END SOLUTION

%% prose end
## The end

%% zh
## 结束
'''


def notebook() -> Any:
    """The sample's source notebook."""
    return from_text(TEXT)


def write_module(root: Path, name: str = NAME) -> Path:
    """Write it as `root/<name>/<name>.ipynb` with two support files."""
    folder = root / name
    write_notebook(notebook(), folder / f"{name}.ipynb")
    (folder / "numbers.txt").write_text("1 2 3\n")
    (folder / "hint.en.md").write_text("Use +.\n")
    (folder / "hint.zh.md").write_text("用 +。\n")
    return folder


def answered(released: Any, code: str) -> Any:
    """A copy of a released notebook in which the solution cell is `code`."""
    import copy

    result = copy.deepcopy(released)
    for cell in result.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "add":
            cell.source = code
    return result
