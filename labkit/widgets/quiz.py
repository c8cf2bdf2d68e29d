"""Questions in a notebook: `quiz("part3", 8)`. Answers live in `answers/` beside the notebook.

In practice mode an answer is marked at once, every option explained, and the engine's proof is one click away;
in graded mode the answer is stored and nothing else is known here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labkit.errors import LabError
from labkit.i18n import t
from labkit.quiz.answers import Attempt
from labkit.quiz.evidence import Outcome
from labkit.quiz.marking import Line, Mark, is_answered
from labkit.quiz.model import Evidence
from labkit.quiz.present import Shown, scenario_text
from labkit.quiz.session import GRADED, PRACTICE, Session
from labkit.widgets import view as v
from labkit.widgets.base import LabWidget

Block = v.Block


class QuizController:
    """State of the shown questions: what is chosen, what was submitted, which proofs are open."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.at = 0
        self._drafts: dict[str, Any] = {}
        self._problems: dict[str, str] = {}
        self._proofs: dict[str, list[tuple[Evidence, Outcome]]] = {}

    # --- what the learner does ---------------------------------------------------------------------------

    def handle(self, id: str, value: Any) -> None:
        """`<question>:<what>`, such as `8:choice`, `8:submit`, `8:up.filter`, `8:match.left-1`; or `page`."""
        if id in ("previous", "next"):
            self.at = min(max(self.at + (1 if id == "next" else -1), 0), len(self.session.ids) - 1)
            return
        question, _, what = id.partition(":")
        if question not in self.session.ids:
            return
        shown = self.session.shown(question)
        what, _, part = what.partition(".")
        self._problems.pop(question, None)
        if what in ("choice", "text"):
            self._drafts[question] = value
        elif what in ("up", "down"):
            self._drafts[question] = _moved(self._order(shown), part, -1 if what == "up" else 1)
        elif what == "match":
            self._drafts[question] = {**(self._response(question) or {}), part: value}
        elif what == "submit":
            self._submit(question, shown)
        elif what == "again":
            self.session.another(question)
            self._drafts.pop(question, None)
            self._proofs.pop(question, None)
        elif what == "proof":
            self._toggle_proof(question)

    def _submit(self, question: str, shown: Shown) -> None:
        response = self._order(shown) if shown.kind == "order" else self._response(question)
        if shown.kind == "fix_yaml" and response is None:
            response = shown.start
        if not is_answered(response):
            self._problems[question] = t("Choose or write an answer first.", "请先选择或填写答案。")
            return
        try:
            self.session.submit(question, response)
        except LabError as e:
            self._problems[question] = str(e)
            return
        aside = self.session.answers.aside
        if aside is not None:
            self._problems[question] = t(
                f"The answers file was damaged. It is kept as {aside.name}; this answer begins a new file.",
                f"答案文件已损坏，原文件保留为 {aside.name}；这个答案写入了新文件。",
            )

    def _toggle_proof(self, question: str) -> None:
        if self._proofs.pop(question, None) is not None:
            return
        source = self.session.question(question)
        if source is not None:
            outcomes = [outcome for _, outcome in self.session.evidence(question)]
            self._proofs[question] = list(zip(source.proofs, outcomes, strict=True))

    def _response(self, question: str) -> Any:
        if question in self._drafts:
            return self._drafts[question]
        last = self.session.last(question)
        return last.response if last is not None else None

    def _order(self, shown: Shown) -> list[str]:
        ids = [c.id for c in shown.choices]
        given = self._response(shown.id)
        kept = [i for i in given if i in ids] if isinstance(given, list) else []
        return kept + [i for i in ids if i not in kept]

    # --- what the learner sees ---------------------------------------------------------------------------

    def view(self) -> list[Block]:
        """One card, or a pager when there are several questions."""
        ids = self.session.ids
        try:
            self.session.last(ids[self.at])
        except LabError as e:
            return [v.notice("error", str(e))]
        if len(ids) == 1:
            return self._card(ids[0])
        done = sum(self.session.last(i) is not None for i in ids)
        sub = t(
            f"question {self.at + 1} of {len(ids)}, {done} answered",
            f"第 {self.at + 1} / {len(ids)} 题，已答 {done} 题",
        )
        buttons = [
            v.button("previous", t("Previous", "上一题"), disabled=self.at == 0),
            v.button("next", t("Next", "下一题"), disabled=self.at == len(ids) - 1),
        ]
        return [v.toolbar(str(self.session.title), sub=sub, buttons=buttons), *self._card(ids[self.at])]

    def _card(self, question: str) -> list[Block]:
        shown, last = self.session.shown(question), self.session.last(question)
        dirty = question in self._drafts and (last is None or self._drafts[question] != last.response)
        result = None
        if last is not None and not dirty:
            try:
                result = self.session.mark(question, last.response)
            except Exception as e:
                self._problems[question] = f"{type(e).__name__}: {e}"
        items: list[Block] = []
        if shown.given:
            items.append(v.pre(shown.given, label=t("The cluster and the pods", "集群与 Pod")))
        items += self._controls(shown)
        if shown.hint is not None:
            items.append(v.details(t("Hint", "提示"), v.text(plain(str(shown.hint)))))
        items.append(self._buttons(shown, last))
        if question in self._problems:
            items.append(v.notice("error", self._problems[question]))
        items.append(self._verdict(question, last, result, dirty))
        if result is not None:
            items += explained(result)
        items += self._proof(question)
        return [v.card(t(f"Question {question}", f"问题 {question}"), *items)]

    def _controls(self, shown: Shown) -> list[Block]:
        response, name = self._response(shown.id), f"{shown.id}:"
        question = plain(str(shown.text))
        choices = [(c.id, plain(str(c.text))) for c in shown.choices]
        if shown.kind in ("single", "multiple", "predict_node"):
            many = shown.kind == "multiple"
            value = response if isinstance(response, list if many else str) else ([] if many else None)
            return [v.controls(v.choice(f"{name}choice", question, value, choices, many=many))]
        if shown.kind == "numeric":
            label = question + (f" ({shown.unit})" if shown.unit else "")
            return [v.controls(v.entry(f"{name}text", label, "" if response is None else str(response)))]
        if shown.kind == "fix_yaml":
            value = response if isinstance(response, str) else shown.start
            return [
                v.controls(
                    v.code(f"{name}text", question, value, rows=min(24, value.count("\n") + 3), live=False)
                )
            ]
        if shown.kind == "match":
            chosen = response if isinstance(response, dict) else {}
            options = [("", t("choose", "请选择")), *choices]
            selects = [
                v.select(f"{name}match.{c.id}", plain(str(c.text)), str(chosen.get(c.id) or ""), options)
                for c in shown.lefts
            ]
            return [v.text(question), v.controls(*selects)]
        return [v.text(question), *self._order_rows(shown, dict(choices))]

    def _order_rows(self, shown: Shown, texts: dict[str, str]) -> list[Block]:
        order = self._order(shown)
        rows = []
        for number, id in enumerate(order):
            up = v.button(
                f"{shown.id}:up.{id}",
                "↑",
                disabled=number == 0,
                label=t(f"Move {texts[id]} up", f"上移 {texts[id]}"),
            )
            down = v.button(
                f"{shown.id}:down.{id}",
                "↓",
                disabled=number == len(order) - 1,
                label=t(f"Move {texts[id]} down", f"下移 {texts[id]}"),
            )
            rows.append(
                v.grid("1fr auto", v.text(f"{number + 1}. {texts[id]}"), v.buttons(up, down), keep=True)
            )
        return rows

    def _buttons(self, shown: Shown, last: Attempt | None) -> Block:
        practice = self.session.mode == PRACTICE
        source = self.session.question(shown.id)
        found = [
            v.button(
                f"{shown.id}:submit",
                t("Check", "检查") if practice else t("Save answer", "保存答案"),
                primary=True,
            )
        ]
        if source is not None and source.parameters:
            found.append(v.button(f"{shown.id}:again", t("Other numbers", "换一组数字")))
        if source is not None and source.proofs and last is not None:
            opened = shown.id in self._proofs
            text = t("Hide the proof", "收起证明") if opened else t("Prove it", "证明给我看")
            found.append(v.button(f"{shown.id}:proof", text, pressed=opened))
        return v.buttons(*found)

    def _verdict(self, question: str, last: Attempt | None, result: Mark | None, dirty: bool) -> Block:
        if last is None:
            return v.verdict(t("Not answered yet.", "尚未作答。"))
        times = t(f"attempt {last.number}", f"第 {last.number} 次作答")
        if dirty:
            return v.verdict(t("Changed, not checked.", "已修改，尚未检查。"), times)
        if result is None:
            return v.verdict(
                t("Saved. It is marked after the deadline.", "已保存，截止后评分。"), times, status="pass"
            )
        status = "pass" if result.fraction >= 1 else "wait" if result.fraction > 0 else "fail"
        share = "" if result.fraction in (0, 1) else f" ({round(result.fraction * 100)}%)"
        return v.verdict(f"{v.GLYPHS[status]} {result.verdict}{share}", times, status=status)

    def _proof(self, question: str) -> list[Block]:
        blocks: list[Block] = []
        for evidence, outcome in self._proofs.get(question, []):
            blocks.append(
                v.notice(
                    "pass" if outcome.holds else "error",
                    plain(str(evidence.about)),
                    "\n".join(outcome.differences) or None,
                )
            )
            if evidence.scenario is not None:
                shown = scenario_text(evidence.scenario)
                blocks.append(
                    v.details(t("What was run", "运行的场景"), v.pre(shown, label=t("scenario", "场景")))
                )
                blocks.append(decisions(outcome))
            else:
                said = f"{evidence.call}({', '.join(f'{k}={a!r}' for k, a in evidence.args.items())}) = {outcome.result}"
                blocks.append(v.pre(said, label=t("what the code says", "代码给出的结果")))
        return blocks

    def summary(self) -> str:
        """Which questions, and how far the learner is."""
        parts = []
        try:
            self.session.last(self.session.ids[0])
        except LabError as e:
            return str(e)
        for id in self.session.ids:
            last = self.session.last(id)
            if last is None:
                parts.append(t(f"question {id} not answered", f"问题 {id} 未作答"))
            elif self.session.mode == GRADED or last.fraction is None:
                parts.append(t(f"question {id} saved", f"问题 {id} 已保存"))
            else:
                parts.append(
                    t(
                        f"question {id} {round(last.fraction * 100)}%",
                        f"问题 {id} {round(last.fraction * 100)}%",
                    )
                )
        return f"{self.session.title}: " + ", ".join(parts)


def explained(result: Mark) -> list[Block]:
    """The mark as a table and words."""
    columns = [
        v.column(t("Answer", "答案")),
        v.column(t("Verdict", "判定"), width="110px"),
        v.column(t("Why", "原因")),
    ]
    rows = [v.row(plain(line.text), _status(line), plain(line.why)) for line in result.lines]
    blocks = [v.table(columns, rows)]
    if result.explanation:
        blocks.append(v.text(plain(result.explanation)))
    if result.corrections:
        # No table: beside each other where there is room, below each other on a narrow page.
        both = [
            v.grid(
                "minmax(0,2fr) minmax(0,3fr)",
                v.text(t(f"Others: {plain(source)}", f"别处：{plain(source)}"), mute=True),
                v.text(t(f"1.36: {plain(fact)}", f"1.36：{plain(fact)}")),
            )
            for source, fact in result.corrections
        ]
        title = t("What others say, and what 1.36 does", "别处的说法与 1.36 的实际行为")
        blocks.append(v.details(title, *both))
    return blocks


def _status(line: Line) -> Block:
    return v.mark(line.status, line.word)


def decisions(outcome: Outcome) -> Block:
    """What the engine decided, a row a pod."""
    if outcome.error is not None:
        return v.pre(outcome.error, label=t("the configuration is refused", "配置被拒绝"))
    columns = [v.column("Pod"), v.column(t("Node", "节点")), v.column(t("Message", "消息"))]
    rows = []
    for pod, decision in outcome.decisions.items():
        bound = decision.get("bound")
        rows.append(
            v.row(
                pod,
                v.mark("pass", bound) if bound else v.mark("wait", "Pending"),
                decision.get("message") or "",
            )
        )
    return v.table(columns, rows, caption=t("What the engine decided", "引擎的决定"))


def plain(text: str) -> str:
    """Without Markdown's code marks: the page shows texts as they are."""
    return text.replace("`", "")


def _moved(order: list[str], id: str, step: int) -> list[str]:
    moved = list(order)
    if id in moved:
        here = moved.index(id)
        there = min(max(here + step, 0), len(moved) - 1)
        moved.insert(there, moved.pop(here))
    return moved


def quiz(bank: str, *questions: str | int, folder: Path | None = None) -> LabWidget:
    """Questions of a bank as a widget; without numbers the whole bank. Raises InputError for unknown ones."""
    session = Session(bank, [str(q) for q in questions] or None, folder=folder)
    return LabWidget(QuizController(session))
