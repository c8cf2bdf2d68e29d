"""Checks of extenders: handlers and plugins are asked over HTTP; each fault is named, in both languages."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from labkit.check import extenders
from labkit.framework.status import Status
from labkit.i18n import set_language

TWO = {"nodes": {"n1": {"cpu": 4}, "n2": {"cpu": 4}}, "pods": {"web": {"cpu": 1}}}


def names_of(request: dict[str, Any]) -> list[str]:
    """Node names, in either form."""
    if request["NodeNames"] is not None:
        return list(request["NodeNames"])
    return [n["metadata"]["name"] for n in request["Nodes"]["items"]]


def all_pass(request: dict[str, Any]) -> dict[str, Any]:
    """Refuses nothing; says when there is nothing."""
    if request["NodeNames"] is None and request["Nodes"] is None:
        return {"Error": "nothing to look at"}
    return {"Nodes": request["Nodes"], "NodeNames": request["NodeNames"]}


def fives(request: dict[str, Any]) -> list[dict[str, Any]]:
    """5 for every node."""
    return [{"Host": n, "Score": 5} for n in names_of(request)]


class OnlyN2:
    """A plugin: n1 is refused, n2 gets 80 of 100."""

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        """By name."""
        return Status.unschedulable("not n2") if node.name == "n1" else None

    def score(self, state: Any, pod: Any, node: Any) -> int:
        """The same everywhere."""
        return 80


@pytest.fixture(params=["en", "zh"])
def language(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both languages, one after the other."""
    set_language(request.param)
    yield request.param
    set_language("en")


def problems(exercise: Any) -> dict[str, str]:
    """Case -> what is wrong with it."""
    return {c.name: c.problem for c in exercise.failures}


def test_sound_handlers_pass_every_case() -> None:
    """All points, all cases of the checker."""
    report = extenders.protocol({"filter": all_pass, "prioritize": fives}, points=4)
    assert problems(report) == {}
    assert report.score == 4
    assert {"filter, NodeNames", "filter, Nodes", "filter, empty list", "prioritize, Nodes"} <= {
        c.name for c in report.cases
    }


def test_faults_are_told_with_their_line(language: str) -> None:
    """An exception of the handler, a score out of range, a lost field."""

    def only_names(request: dict[str, Any]) -> dict[str, Any]:
        return {"NodeNames": [n + "" for n in request["NodeNames"]]}

    def hundred(request: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"Host": n, "Score": 100} for n in names_of(request)]

    report = extenders.protocol({"filter": only_names, "prioritize": hundred}, points=4)
    found = problems(report)
    assert set(found) == {"filter, Nodes", "prioritize, NodeNames", "prioritize, Nodes"}
    assert "TypeError" in found["filter, Nodes"]
    assert "only_names" in next(c.detail for c in report.failures if c.name == "filter, Nodes")
    assert "100" in found["prioritize, Nodes"]
    assert ("淹没" in found["prioritize, Nodes"]) == (language == "zh")


def test_nodes_must_come_back_as_they_were() -> None:
    """Fields that a handler does not know are lost, and the check says so."""

    def stripped(request: dict[str, Any]) -> dict[str, Any]:
        if request["Nodes"] is None:
            return all_pass(request)
        return {"Nodes": {"items": [{"metadata": {"name": n}} for n in names_of(request)]}}

    report = extenders.protocol({"filter": stripped, "prioritize": fives}, points=4)
    assert list(problems(report)) == ["filter, Nodes"]
    assert "unknown node fields are lost" in problems(report)["filter, Nodes"]


@pytest.mark.parametrize(
    "handlers", [None, {}, {"filter": all_pass}, {"filter": 3, "prioritize": fives}, OnlyN2]
)
def test_what_is_no_pair_of_handlers_scores_nothing(handlers: Any) -> None:
    """Refused with words; no server is asked."""
    report = extenders.protocol(handlers, points=4)
    assert report.score == 0
    assert "there is no function for" in report.text()


def test_an_unwritten_half_does_not_cost_the_other() -> None:
    """prioritize raises NotImplementedError: filter's cases count."""

    def later(request: dict[str, Any]) -> Any:
        raise NotImplementedError

    found = problems(extenders.protocol({"filter": all_pass, "prioritize": later}, points=4))
    assert found == {f"prioritize, {form}": "Not written yet." for form in ("NodeNames", "Nodes")}


def test_a_plugin_decides_over_http() -> None:
    """What it refused and why, what it added; a wrong expectation shows the message."""
    given = {**TWO, "nodes": {**TWO["nodes"], "n3": {"cpu": 4}}}
    expect = {"web": {"failed.n1": "not n2", "kept": 2, "points.n2": 80 * 2, "points.n3": 160}}
    assert problems(extenders.decisions(OnlyN2, given, expect, points=2, weight=2)) == {}
    one = {**TWO, "nodes": {"n1": {"cpu": 4}}}
    report = extenders.decisions(OnlyN2, one, {"web": {"bound": "n1"}}, points=2)
    assert report.score == 0
    assert "1 not n2" in report.text()


def test_a_plugin_that_fails_is_told(language: str) -> None:
    """Also where kube-scheduler would say nothing: in prioritize."""

    class Bad:
        def score(self, state: Any, pod: Any, node: Any) -> int:
            return 300

    report = extenders.decisions(Bad, TWO, {"web": {"points.n1": 0}}, points=1)
    assert "300" in problems(report)[report.cases[0].name]


def test_messages_carry_no_port() -> None:
    """Reports must be the same in every run."""

    def crash(request: dict[str, Any]) -> Any:
        raise RuntimeError("disk full")

    handlers = {"filter": crash}
    trace = extenders.attempt(handlers, TWO)["web"]
    assert trace.message == "failed filter with extender at URL http://extender/filter, code 500"
    (note,) = extenders.attempt(handlers, TWO, ignorable=True)["web"].notes
    assert "http://extender" in note


def test_servers_end_with_the_check() -> None:
    """No thread is left behind."""
    before = threading.active_count()
    for _ in range(3):
        extenders.attempt({"filter": all_pass, "prioritize": fives}, TWO)
    assert threading.active_count() <= before + 1
