"""What is found about a submission, in the learner's language, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labkit.i18n import Catalogue, language

#: Findings of these levels; a fatal one means that the submission cannot be graded.
LEVELS = ("repaired", "flagged", "fatal")

_SAY = Catalogue(
    {
        "nothing": (
            "There is no notebook in {where}. Submit {name}.",
            "{where} 里没有 notebook。请提交 {name}。",
        ),
        "renamed": ("{found} was taken for {name}.", "已把 {found} 当作 {name}。"),
        "huge": (
            "{name} has {size} MB, more than {most}. Clear the outputs (Edit > Clear Outputs of All Cells), save, submit again.",
            "{name} 有 {size} MB，超过 {most}。请清除输出（Edit > Clear Outputs of All Cells），保存后重新提交。",
        ),
        "damaged": (
            "{name} is damaged or cut short ({why}). Open it in JupyterLab, save it, submit again.",
            "{name} 已损坏或不完整（{why}）。请在 JupyterLab 中打开、保存后重新提交。",
        ),
        "module": (
            "{name} is a notebook of module {other}, not of {module}. Submit {module}.ipynb.",
            "{name} 是模块 {other} 的 notebook，不是 {module}。请提交 {module}.ipynb。",
        ),
        "foreign": (
            "{name} has none of the exercises of {module}. Submit {module}.ipynb from your workspace.",
            "{name} 中没有 {module} 的任何练习。请提交工作区里的 {module}.ipynb。",
        ),
        "metadata": (
            "Cell {id}: the mark that nbgrader needs was missing; put back.",
            "单元 {id}：缺少 nbgrader 标记，已恢复。",
        ),
        "copied": (
            "Cell {id} is there {n} times; the first one counts as the exercise, all of them run.",
            "单元 {id} 出现了 {n} 次；以第一个为准，全部都会运行。",
        ),
        "deleted-test": ("Cell {id} with checks was deleted; put back.", "检查单元 {id} 被删除，已恢复。"),
        "deleted-answer": (
            "Cell {id} for your answer was deleted; it counts as not answered unless another cell defines it.",
            "作答单元 {id} 被删除；除非其他单元有定义，否则视为未作答。",
        ),
        "edited-test": (
            "Cell {id} with checks was edited; the original one counts.",
            "检查单元 {id} 被修改；以原版为准。",
        ),
        "type": ("Cell {id} had become a {found} cell; put back.", "单元 {id} 变成了 {found} 单元，已恢复。"),
        "answers": (
            "The folder answers/ was not submitted; quiz questions get no points without it.",
            "没有提交 answers/ 文件夹；没有它，测验题不得分。",
        ),
    }
)


@dataclass(frozen=True)
class Finding:
    """Something about a submission. `kind` is stable, `text` is in the learner's language."""

    kind: str
    level: str
    text: str
    cell: str = ""


@dataclass
class Checked:
    """The repaired notebook (None when it cannot be graded) and what was found."""

    module: str
    language: str
    notebook: Any = None
    path: Path | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def fatal(self) -> Finding | None:
        """Why it cannot be graded."""
        return next((f for f in self.findings if f.level == "fatal"), None)

    def note(self, kind: str, level: str, cell: str = "", **values: Any) -> None:
        """Remember a finding."""
        with language(self.language):
            self.findings.append(Finding(kind, level, _SAY(kind, id=cell, **values), cell))
