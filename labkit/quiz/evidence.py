"""Running the evidence of a question: what the engine decides, beside what the question claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from labkit.errors import InputError, LabError
from labkit.quiz.model import Evidence, Numeric, PredictNode, Scenario
from labkit.quiz.scenario import engine_input

#: `{config, objects, pods}` in, `{"expect": [decision a pod]}` or `{"configError": text}` out (trace format).
Runner = Callable[[dict[str, Any]], dict[str, Any]]


def engine_runner(scenario: dict[str, Any]) -> dict[str, Any]:
    """The engine's decisions."""
    from labkit.engine.replay import replay

    return replay(scenario)


@dataclass
class Outcome:
    """One run: the decisions by pod, the refusal of the configuration, and every claim that failed."""

    decisions: dict[str, dict[str, Any]] = field(default_factory=dict)
    error: str | None = None
    result: Any = None
    differences: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """True when every claim is what happened."""
        return not self.differences


def run_scenario(scenario: Scenario, runner: Runner = engine_runner, **replaced: str) -> Outcome:
    """Run a scenario, with a learner's text for "config", "pods" or "objects" if given. Raises InputError."""
    got = runner(engine_input(scenario, **replaced))
    if "configError" in got:
        return Outcome(error=str(got["configError"]))
    return Outcome(decisions={short_name(str(d["pod"])): d for d in got["expect"]})


def short_name(pod: str) -> str:
    """`default/web` -> `web`; other namespaces stay."""
    return pod.removeprefix("default/")


def check(evidence: Evidence, runner: Runner = engine_runner) -> Outcome:
    """Run one piece of evidence and compare. What goes wrong in the run is a difference, not an exception."""
    try:
        if evidence.call is not None:
            return _check_call(evidence)
        assert evidence.scenario is not None
        outcome = run_scenario(evidence.scenario, runner)
    except LabError as e:
        return Outcome(differences=[str(e)])
    if evidence.error is not None:
        if outcome.error is None or evidence.error not in outcome.error:
            outcome.differences.append(
                f"the configuration must be refused with {evidence.error!r}, got {outcome.error!r}"
            )
        return outcome
    if outcome.error is not None:
        outcome.differences.append(f"the configuration is refused: {outcome.error}")
        return outcome
    outcome.differences = list(compare(evidence.expect, outcome.decisions))
    return outcome


def compare(
    expect: Mapping[str, Mapping[str, Any]], decisions: Mapping[str, dict[str, Any]]
) -> Iterator[str]:
    """What of `expect` is not so, one line each."""
    for pod, facts in expect.items():
        if pod not in decisions:
            yield f"{pod}: there is no decision for this pod"
            continue
        for fact, wanted in facts.items():
            yield from _compare(f"{pod}.{fact}", wanted, look_up(decisions[pod], fact))


def look_up(decision: dict[str, Any], path: str) -> Any:
    """A fact by its path in the trace: `bound`, `filter.n1.plugin`, `scores.n1.total`,
    `scores.n1.plugins.NodeResourcesFit.raw`. None when there is no such thing."""
    value: Any = decision
    rest = path
    while rest:
        if not isinstance(value, dict):
            return None
        # Keys may contain dots (extended resources, node names): the longest matching key first.
        for cut in sorted({len(rest), *[i for i, ch in enumerate(rest) if ch == "."]}, reverse=True):
            if rest[:cut] in value:
                value, rest = value[rest[:cut]], rest[cut + 1 :]
                break
        else:
            return None
    return value


def _compare(path: str, wanted: Any, got: Any) -> Iterator[str]:
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key, value in wanted.items():
            yield from _compare(f"{path}.{key}", value, got.get(key))
    elif isinstance(wanted, dict) and set(wanted) == {"contains"}:
        if str(wanted["contains"]) not in str(got):
            yield f"{path}: expected … {wanted['contains']} …, got {got}"
    elif wanted != got or isinstance(wanted, bool) != isinstance(got, bool):
        yield f"{path}: expected {wanted!r}, got {got!r}"


def _check_call(evidence: Evidence) -> Outcome:
    from labkit.quiz import proofs

    function = proofs.PROOFS.get(str(evidence.call))
    if function is None:
        raise InputError(
            "is no proof",
            field="call",
            value=evidence.call,
            hint="proofs: " + ", ".join(sorted(proofs.PROOFS)),
        )
    try:
        result = function(**evidence.args)
    except TypeError as e:
        raise InputError(
            f"does not take these arguments: {e}", field=f"args of {evidence.call}", value=evidence.args
        ) from e
    return Outcome(result=result, differences=list(_compare(str(evidence.call), evidence.result, result)))


def computed_answer(question: Numeric, runner: Runner = engine_runner) -> float:
    """The number that the engine gives for a parameterised question; of a list, how many entries it has.

    Raises InputError when it gives none.
    """
    if question.key is None:
        assert question.answer is not None
        return question.answer
    assert question.scenario is not None
    outcome = run_scenario(question.scenario, runner)
    pod, path = question.key[0], ".".join(question.key[1:])
    value = look_up(outcome.decisions.get(pod, {}), path)
    if isinstance(value, list):
        value = len(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(
            "is no number in the engine's decision",
            object=f"question {question.id}",
            field="key",
            value=value,
        )
    return float(value)


def predicted(question: PredictNode, runner: Runner = engine_runner) -> tuple[list[str], dict[str, Any]]:
    """Nodes that are right ("none" when the pod stays pending) and the decision that proves it."""
    outcome = run_scenario(question.scenario, runner)
    decision = outcome.decisions.get(question.pod)
    if decision is None:
        raise InputError(
            outcome.error or "there is no decision for this pod",
            object=f"question {question.id}",
            field="pod",
            value=question.pod,
        )
    return (list(decision.get("best") or []) or ["none"]), decision
