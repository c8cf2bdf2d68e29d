"""What a question bank is: a YAML file in `quizzes/`, checked against these types.

Every text is `{en: ..., zh: ...}`. `parameters` makes any question a family: `${name}` in its texts and
scenario is replaced by a number drawn from the learner's seed, and the key is what the engine answers.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from labkit.i18n import t


class Text(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text in both languages; `str()` gives the current one."""

    en: str
    zh: str

    def __post_init__(self) -> None:
        if not self.en.strip() or not self.zh.strip():
            raise ValueError("both en and zh must have text")

    def __str__(self) -> str:
        return t(self.en, self.zh).strip()


class Option(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer to choose, with the reason why it is right or wrong."""

    id: str
    text: Text
    explain: Text
    correct: bool = False


class Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing to put in order; the bank lists items in the right order."""

    id: str
    text: Text
    explain: Text | None = None


class Pair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing to match: `left` belongs to `right`."""

    id: str
    left: Text
    right: Text
    explain: Text | None = None


class Mistake(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A typical wrong number, and where it comes from. `value` may be a formula of the parameters."""

    value: float | str
    explain: Text


class Parameter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a number comes from: one of `choose`, or `start`, `start + step`, ... up to `stop`."""

    choose: list[Any] | None = None
    start: int | None = None
    stop: int | None = None
    step: int = 1

    def __post_init__(self) -> None:
        span = self.start is not None and self.stop is not None and self.start <= self.stop and self.step > 0
        if (not self.choose) == (not span):
            raise ValueError("needs either `choose` or `start` and `stop`")

    def values(self) -> list[Any]:
        """All values that can be drawn."""
        if self.choose:
            return list(self.choose)
        assert self.start is not None
        assert self.stop is not None
        return list(range(self.start, self.stop + 1, self.step))


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Input of one run of the engine.

    `nodes`, `placed` and `pods` are short forms, `{name: {cpu: 4, memory: 8Gi, labels: {}, ...}}`; `objects`
    holds anything else as Kubernetes YAML. `config` is a KubeSchedulerConfiguration or its `profiles` alone.
    """

    nodes: dict[str, dict[str, Any]] = {}
    placed: dict[str, dict[str, Any]] = {}
    pods: dict[str, dict[str, Any]] = {}
    objects: str | list[dict[str, Any]] | None = None
    config: str | dict[str, Any] | None = None


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run that shows that options are right or wrong.

    Either a scenario with `expect` (facts by pod, as in a trace) or `error` (the configuration is refused with
    this text), or `call`, a function of `labkit.quiz.proofs` with its `args` and the `result` that it must give.
    """

    about: Text
    options: list[str] = []
    scenario: Scenario | None = None
    expect: dict[str, dict[str, Any]] = {}
    error: str | None = None
    call: str | None = None
    args: dict[str, Any] = {}
    result: Any = None

    def __post_init__(self) -> None:
        if (self.scenario is None) == (self.call is None):
            raise ValueError("needs either `scenario` or `call`")
        if self.scenario is not None and not self.expect and self.error is None:
            raise ValueError("a scenario needs `expect` or `error`")
        if self.call is not None and self.result is None:
            raise ValueError("`call` needs `result`")


class Correction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a common source says, what Kubernetes 1.36 does instead, and runs that show it where one can."""

    source: Text
    fact: Text
    evidence: list[Evidence] = []


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """What all kinds have. `corrections` tell what a common source says and what 1.36 does."""

    id: str
    text: Text
    topic: str = ""
    points: float = 1
    explanation: Text | None = None
    corrections: list[Correction] = []
    hint: Text | None = None
    parameters: dict[str, Parameter] = {}
    evidence: list[Evidence] = []

    #: Question kinds whose key is computed by the engine need no evidence beside it.
    proven_by_running: ClassVar[bool] = False

    @property
    def proofs(self) -> list[Evidence]:
        """The evidence for the options, then that for the corrections."""
        return [*self.evidence, *(e for c in self.corrections for e in c.evidence)]

    @property
    def kind(self) -> str:
        """The kind's name in the bank."""
        tag = self.__struct_config__.tag
        return str(tag)


class Single(Question, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="single"):
    """Exactly one option is right."""

    options: list[Option]

    def __post_init__(self) -> None:
        _check_options(self.options)
        if sum(o.correct for o in self.options) != 1:
            raise ValueError("exactly one option must have `correct: true`")


class Multiple(Question, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="multiple"):
    """Some options are right; each one counts."""

    options: list[Option]

    def __post_init__(self) -> None:
        _check_options(self.options)
        if not any(o.correct for o in self.options):
            raise ValueError("at least one option must have `correct: true`")


class Numeric(Question, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="numeric"):
    """A number: given as `answer`, or read from the engine's decision at `key`."""

    answer: float | None = None
    scenario: Scenario | None = None
    key: list[str] | None = None
    tolerance: float = 0
    unit: str = ""
    mistakes: list[Mistake] = []

    def __post_init__(self) -> None:
        if (self.answer is None) == (self.key is None):
            raise ValueError("needs either `answer` or `key`")
        if self.key is not None and (self.scenario is None or len(self.key) < 2):
            raise ValueError("`key` is [pod, field, ...] in the decision of `scenario`")


class Order(Question, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="order"):
    """Items to put in order, listed in the right one."""

    items: list[Item]

    def __post_init__(self) -> None:
        _check_ids([i.id for i in self.items])


class Match(Question, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="match"):
    """Pairs to put together."""

    pairs: list[Pair]

    def __post_init__(self) -> None:
        _check_ids([p.id for p in self.pairs])


class FixYaml(Question, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="fix_yaml"):
    """YAML to mend; marked by running it. `part` says what the learner writes: config, pods or objects."""

    proven_by_running: ClassVar[bool] = True

    start: str
    solution: str
    goal: dict[str, dict[str, Any]]
    part: str = "pods"
    scenario: Scenario = Scenario()

    def __post_init__(self) -> None:
        if self.part not in ("config", "pods", "objects"):
            raise ValueError("`part` is config, pods or objects")
        if not self.goal:
            raise ValueError("`goal` must name at least one pod and fact")


class PredictNode(Question, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="predict_node"):
    """Where does `pod` go? The engine knows."""

    proven_by_running: ClassVar[bool] = True

    pod: str
    scenario: Scenario

    def __post_init__(self) -> None:
        if not self.scenario.nodes and self.scenario.objects is None:
            raise ValueError("the scenario needs nodes")


AnyQuestion = Single | Multiple | Numeric | Order | Match | FixYaml | PredictNode


class Bank(msgspec.Struct, frozen=True, kw_only=True):
    """A question bank."""

    id: str
    title: Text
    questions: list[AnyQuestion]

    def question(self, id: str) -> AnyQuestion:
        """The question `id`. Raises KeyError."""
        for question in self.questions:
            if question.id == id:
                return question
        raise KeyError(id)


def _check_options(options: list[Option]) -> None:
    if len(options) < 2:
        raise ValueError("needs at least two options")
    _check_ids([o.id for o in options])


def _check_ids(ids: list[str]) -> None:
    if len(ids) < 2:
        raise ValueError("needs at least two entries")
    twice = sorted({i for i in ids if ids.count(i) > 1})
    if twice:
        raise ValueError(f"id used twice: {', '.join(twice)}")
