"""The extender inspector: calls, bodies and consequences, over real HTTP on the loopback address."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from labkit import Lab
from labkit.errors import LabError
from labkit.extender.server import ExtenderServer
from labkit.framework.status import Status
from labkit.i18n import set_language
from labkit.widgets import extender_inspector
from labkit.widgets.extender_inspector import ExtenderInspectorController
from labkit.widgets.extender_tap import pretty, shorten

from tests.widgets.blocks import cells, column, controls, of_type, text_of, verdict

NODE = """
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{rank: "{rank}"}}}}
status: {{allocatable: {{cpu: "4", memory: 8Gi, pods: "110"}}, capacity: {{cpu: "4", memory: 8Gi, pods: "110"}}}}
---
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec: {containers: [{name: app, image: app, resources: {requests: {cpu: 500m}}}]}
"""
BUSY = """
---
apiVersion: v1
kind: Pod
metadata: {name: busy, namespace: default}
spec: {nodeName: n1, containers: [{name: app, image: app, resources: {requests: {cpu: "2", memory: 4Gi}}}]}
"""
KIND = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


class ByRank:
    """Rank 0 never, others pass; more is better."""

    name = "ByRank"

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        """Unresolvable for rank 0."""
        return Status.unresolvable("no rank") if node.node.metadata.labels.get("rank") == "0" else None

    def score(self, state: Any, pod: Any, node: Any) -> int:
        """Ten points a rank."""
        return 10 * int(node.node.metadata.labels.get("rank", "0"))


class Nowhere:
    """Rejects every node, in a way that preemption might mend."""

    name = "Nowhere"

    def filter(self, state: Any, pod: Any, node: Any) -> Status:
        """Always."""
        return Status.unschedulable("not today")


@pytest.fixture(params=["en", "zh"])
def language(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both languages, one after the other."""
    set_language(request.param)
    yield request.param
    set_language("en")


@pytest.fixture
def lab() -> Lab:
    """Ranks 0, 3 and 8 on n0, n1 and n2; half of n1 is taken; `web` waits."""
    nodes = "".join(NODE.format(name=f"n{i}", rank=rank) for i, rank in enumerate((0, 3, 8)))
    return Lab(nodes + POD + BUSY)


@pytest.fixture
def server(lab: Lab) -> Iterator[ExtenderServer]:
    """`ByRank` on a free port."""
    with lab.extender(ByRank()) as running:
        yield running


def shown(view: Any, title: str) -> list[dict[str, Any]]:
    """The items of the card called `title`."""
    (card,) = [c for c in of_type(view, "card") if c.get("title") == title]
    items: list[dict[str, Any]] = card["items"]
    return items


def test_it_lists_the_calls_with_their_bodies(lab: Lab, server: ExtenderServer) -> None:
    """filter with whole nodes, prioritize with those that are left; what was sent and answered as JSON."""
    c = ExtenderInspectorController(server, lab)
    table = of_type(c.view(), "table")[0]
    assert [row[1:] for row in cells(table)] == [
        ["filter", "default/web", "3", "Nodes", "pass 200"],
        ["prioritize", "default/web", "2", "Nodes", "pass 200"],
    ]
    request, response = of_type(c.view(), "pre")
    assert request["text"].startswith("POST /filter\n{")
    assert '"rank": "8"' in request["text"]
    assert '"FailedAndUnresolvableNodes": {"n0": "no rank"}' in response["text"]
    c.handle("call", "2")
    assert '{"Host": "n2", "Score": 8}' in of_type(c.view(), "pre")[1]["text"]
    assert verdict(c.view()) == "web → n2"
    assert lab.pods()[-1]["spec"].get("nodeName") in (None, "n1")


def test_it_says_what_becomes_of_an_answer(lab: Lab, server: ExtenderServer) -> None:
    """Statuses after filter, points and totals after prioritize."""
    c = ExtenderInspectorController(server, lab)
    effect = shown(c.view(), "What kube-scheduler does with it")
    assert column(of_type(effect, "table")[0], "Filter") == {
        "n1": "pass kept",
        "n2": "pass kept",
        "n0": "fail UnschedulableAndUnresolvable",
    }
    assert "without their pods" in text_of(effect)
    c.handle("call", 2)
    (table,) = of_type(shown(c.view(), "What kube-scheduler does with it"), "table")
    assert column(table, "Score × 1 × 10") == {"n2": "80", "n1": "30"}
    totals, sums = column(table, "Total"), column(table, "Plugins' sum")
    assert c.trace.scores["n2"].total == int(totals["n2"]) == int(sums["n2"]) + 80


def test_names_instead_of_nodes(lab: Lab, server: ExtenderServer) -> None:
    """nodeCacheCapable sends names, Score plugins see the pods again, and a plugin that reads labels sees none."""
    c = ExtenderInspectorController(server, lab)
    bare = c.trace.scores["n1"].plugins["NodeResourcesFit"].raw
    c.handle("capable", True)
    assert [row[4] for row in cells(of_type(c.view(), "table")[0])] == [
        "Nodes",
        "Nodes",
        "NodeNames",
        "NodeNames",
    ]
    assert '"Nodes": null, "NodeNames": ["n0", "n1", "n2"]' in of_type(c.view(), "pre")[0]["text"].replace(
        ",\n  ", ", "
    )
    assert c.trace.scores["n1"].plugins["NodeResourcesFit"].raw < bare
    assert c.exchange is not None
    assert c.exchange.kept == ["n0", "n1", "n2"]


def test_down_and_ignorable(lab: Lab, server: ExtenderServer) -> None:
    """Down: the attempt ends in an error, without the port; ignorable too: it goes on."""
    c = ExtenderInspectorController(server, lab)
    c.handle("down", True)
    assert verdict(c.view()) == "web: the attempt ended in an error"
    text = text_of(c.view())
    assert "dial tcp extender: connect: connection refused" in text
    assert str(server.port) not in text
    assert c.summary() == "web: the attempt ended in an error · filter no answer"
    c.handle("ignorable", True)
    assert c.trace.node is not None
    assert "passed over" in text_of(shown(c.view(), "What kube-scheduler does with it"))
    c.handle("call", c.exchanges[-1][0])
    assert "Ignored silently" in text_of(c.view())
    c.handle("down", False)
    assert verdict(c.view()) == "web → n2"


def test_a_plugin_that_fails(lab: Lab) -> None:
    """An `Error` in the answer ends the attempt; a 500 of prioritize is ignored and its body not read."""

    class Broken:
        name = "Broken"

        def score(self, state: Any, pod: Any, node: Any) -> int:
            raise KeyError("rank")

    with lab.extender(Broken()) as running:
        c = ExtenderInspectorController(running, lab)
        assert [row[1:] for row in cells(of_type(c.view(), "table")[0])] == [
            ["prioritize", "default/web", "3", "Nodes", "error 500"]
        ]
        assert "code 500" in text_of(c.view())
        assert c.trace.node is not None
        assert all(s.extender == 0 for s in c.trace.scores.values())


def test_no_node_left(lab: Lab) -> None:
    """Everything rejected: reasons in the message, prioritize not called."""
    with lab.extender(Nowhere()) as running:
        c = ExtenderInspectorController(running, lab)
        assert c.trace.node is None
        assert [e.verb for _, e in c.exchanges] == ["filter"]
        assert "3 not today" in text_of(c.view())
        assert "No node is left" in text_of(shown(c.view(), "What kube-scheduler does with it"))


def test_the_labs_own_calls_are_listed(server: ExtenderServer) -> None:
    """A lab with the extender in its configuration: `schedule_one` adds its calls, also after a rewind."""
    entry = {"urlPrefix": server.url, "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 2}
    nodes = "".join(NODE.format(name=f"n{i}", rank=i) for i in (1, 2))
    own = Lab(nodes + POD, config={**KIND, "extenders": [entry]})
    c = ExtenderInspectorController(own)
    assert len(c.exchanges) == 2
    own.schedule_one()
    c.handle("call", 4)
    (table,) = of_type(shown(c.view(), "What kube-scheduler does with it"), "table")
    assert column(table, "Score × 2 × 10") == {"n2": "40", "n1": "20"}
    assert column(table, "Total")["n2"] == str(own.traces[-1].scores["n2"].total)
    own.rewind()
    c.handle("times", False)
    own.schedule_one()
    assert len(c.exchanges) == 6


def test_send_again_sees_the_lab_as_it_is_now(lab: Lab, server: ExtenderServer) -> None:
    """A node that came is asked about; the list keeps its end only."""
    c = ExtenderInspectorController(server, lab)
    lab.apply(NODE.format(name="n9", rank=9))
    c.handle("again", None)
    assert c.exchange is not None
    assert c.exchange.sent == ["n0", "n1", "n2", "n9"]
    assert c.trace.node == "n9"
    for _ in range(30):
        c.handle("again", None)
    assert len(c.exchanges) == 40
    assert c.chosen in [n for n, _ in c.exchanges]


def test_times_are_shown_on_demand_only(lab: Lab, server: ExtenderServer) -> None:
    """Two inspectors show the same until times are asked for."""
    one, two = (ExtenderInspectorController(server, lab) for _ in range(2))
    assert text_of(one.view()) == text_of(two.view())
    assert "Time in ms" not in text_of(one.view())
    one.handle("times", True)
    assert all(float(x) >= 0 for x in column(of_type(one.view(), "table")[0], "Time in ms").values())


def test_a_lab_without_extenders_is_refused(lab: Lab) -> None:
    """With the way out."""
    with pytest.raises(LabError, match=r"extender_inspector\(lab\.extender"):
        extender_inspector(lab)


def test_every_control_has_a_name(lab: Lab, server: ExtenderServer, language: str) -> None:
    """Labels on controls and tables, in both languages; nonsense does no harm."""
    widget = extender_inspector(server, lab)
    found = controls(widget.view)
    assert {"again", "pod", "call", "capable", "ignorable", "down", "times"} <= set(found)
    assert all(b["text"] for b in found.values())
    assert all(b["caption"] for b in of_type(widget.view, "table"))
    assert ("再发一次" in text_of(widget.view)) == (language == "zh")
    for id, value in (("call", "x"), ("pod", "nobody"), ("call", 99), ("extender", 7), ("nonsense", None)):
        widget.set(id, value)
    widget.set("again")
    assert str(server.port) not in text_of(widget.view)
    assert "web → n2" in repr(widget)


def test_bodies_are_shortened() -> None:
    """Long lists are cut, status lists left out, short parts stay on one line."""
    names = [f"n{i}" for i in range(9)]
    assert shorten({"NodeNames": names})["NodeNames"] == ["n0", "n1", "n2", "n3", "… 5 …"]
    node = {"metadata": {"name": "n", "uid": "u"}, "status": {"allocatable": {"cpu": "1"}, "images": [1]}}
    assert shorten(node) == {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1"}, "…": "…"}}
    assert pretty({"a": 1}) == '{"a": 1}'
    assert pretty({"a": ["x" * 50, "y" * 50]}).count("\n") == 5
