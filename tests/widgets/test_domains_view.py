"""Domains: what the plugins counted, what the engine says of each domain, and what changes with a constraint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from labkit import Lab
from labkit.errors import LabError
from labkit.i18n import set_language
from labkit.widgets import domains_view
from labkit.widgets.domains_view import DomainsViewController

from tests.widgets.blocks import cells, column, controls, of_type, text_of, verdict

POD = "default/web-7"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SKEW = "node(s) didn't match pod topology spread constraints"
NODES = """
apiVersion: v1
kind: Node
metadata: {name: %s, labels: {topology.kubernetes.io/zone: %s, kubernetes.io/hostname: %s}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
"""
GUARD = """
apiVersion: v1
kind: Pod
metadata: {name: guard, namespace: default, labels: {app: guard}}
spec:
  nodeName: x1
  containers: [{name: c, image: "a:1"}]
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - topologyKey: topology.kubernetes.io/zone
          labelSelector: {matchLabels: {app: web}}
---
"""
WEB = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default, labels: {app: web}}
spec:
  containers: [{name: c, image: "a:1"}]
"""


@pytest.fixture(params=["en", "zh"])
def language(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both languages, one after the other."""
    set_language(request.param)
    yield request.param
    set_language("en")


def domains(pod: Any = POD) -> DomainsViewController:
    """web-7: two web pods in zone-a, none in zone-b, two in zone-c."""
    return DomainsViewController(Lab("three-zones"), pod)


def two_zones(*more: str) -> Lab:
    """x1 in zone x, y1 in zone y, and objects."""
    return Lab("".join([*(NODES % (n, n[0], n) for n in ("x1", "y1")), *more, WEB]))


def tables(controller: DomainsViewController) -> list[dict[str, Any]]:
    """The tables, one a rule."""
    return of_type(controller.view(), "table")


def test_a_soft_constraint_scores_and_rejects_nobody() -> None:
    """As written: fewest pods in zone-b, the highest score there; no verdict column."""
    (table,) = tables(domains())
    assert column(table, "Pods") == {"zone-a": "2", "zone-b": "0", "zone-c": "2"}
    assert column(table, "Score") == {"zone-a": "0", "zone-b": "100", "zone-c": "0"}
    assert "Verdict" not in text_of(table["columns"])


def test_a_hard_constraint_shows_skew_and_what_the_engine_says() -> None:
    """2 + 1 − 0 is more than 1; maxSkew 3 lets all zones pass."""
    controller = domains()
    controller.handle("when", "DoNotSchedule")
    (table,) = tables(controller)
    assert column(table, "Skew") == {"zone-a": "3 > 1", "zone-b": "1 ≤ 1", "zone-c": "3 > 1"}
    said = column(table, "Verdict")
    assert said == {"zone-a": "fail rejected", "zone-b": "pass allowed", "zone-c": "fail rejected"}
    assert "minimum 0" in text_of(controller.view())
    controller.handle("skew", 3)
    assert set(column(tables(controller)[0], "Verdict").values()) == {"pass allowed"}


def test_the_nodes_of_a_domain_say_who_rejects_them() -> None:
    """A zone may be allowed while another plugin rejects its nodes."""
    controller = domains()
    controller.handle("when", "DoNotSchedule")
    nodes = column(tables(controller)[0], "Nodes")
    assert nodes == {"zone-a": "a1 ✕, a2 ✕", "zone-b": "b1 ✕, b2 ★", "zone-c": "c1 ✕, c2 ✕"}
    texts = [b["text"] for b in of_type(controller.view(), "text")]
    assert set(texts[0].split(" · ")) == {
        "NodeUnschedulable ✕ a1",
        "PodTopologySpread ✕ a2, c2",
        "NodeResourcesFit ✕ b1",
        "TaintToleration ✕ c1",
    }
    assert f"✕ zone-a, zone-c: {SKEW}" in texts


def test_too_few_domains_make_the_minimum_zero() -> None:
    """log pods are in every zone: the minimum is 1, and 0 with minDomains 4."""
    controller = domains()
    controller.handle("when", "DoNotSchedule")
    controller.handle("selector", "app=log")
    assert "minimum 1" in text_of(controller.view())
    assert "changes no count" in text_of(controller.view())
    assert column(tables(controller)[0], "Skew") == {
        "zone-a": "0 ≤ 1",
        "zone-b": "0 ≤ 1",
        "zone-c": "1 ≤ 1",
    }
    controller.handle("domains", 4)
    assert column(tables(controller)[0], "Skew")["zone-c"] == "2 > 1"
    assert column(tables(controller)[0], "Verdict")["zone-c"] == "fail rejected"
    assert "3 domains, but minDomains is 4" in text_of(controller.view())
    controller.handle("when", "ScheduleAnyway")
    assert "domains" not in controls(controller.view())
    assert "minDomains" not in controller.pod["spec"]["topologySpreadConstraints"][0]


def test_the_key_decides_what_a_domain_is() -> None:
    """By host there are six domains, and c2 holds both pods of its zone."""
    controller = domains()
    controller.handle("when", "DoNotSchedule")
    controller.handle("key", HOST)
    counts = column(tables(controller)[0], "Pods")
    assert counts == {"a1": "1", "a2": "1", "b1": "0", "b2": "0", "c1": "0", "c2": "2"}


def test_anti_affinity_forbids_and_affinity_wants_the_same_domains() -> None:
    """The two are each other's opposite here."""
    controller = domains()
    controller.handle("when", "none")
    controller.handle("affinity", "podAntiAffinity required")
    (table,) = tables(controller)
    assert column(table, "In the way") == {"zone-a": "2", "zone-b": "0", "zone-c": "2"}
    assert [z for z, s in column(table, "Verdict").items() if s == "pass allowed"] == ["zone-b"]
    controller.handle("affinity", "podAffinity required")
    (table,) = tables(controller)
    assert [z for z, s in column(table, "Verdict").items() if s == "pass allowed"] == ["zone-a", "zone-c"]


def test_preferred_terms_give_points_for_or_against() -> None:
    """Weight 100 a pod; anti-affinity counts down."""
    controller = domains()
    controller.handle("when", "none")
    controller.handle("affinity", "podAntiAffinity preferred")
    (table,) = tables(controller)
    assert column(table, "Points") == {"zone-a": "-200", "zone-b": "0", "zone-c": "-200"}
    assert column(table, "Score")["zone-b"] == "100"


def test_the_first_of_a_group_may_go_anywhere_but_only_if_it_is_of_the_group() -> None:
    """No web pod yet: the pod's own label decides."""
    controller = DomainsViewController(two_zones(), "web")
    controller.handle("affinity", "podAffinity required")
    assert "the first one may go anywhere" in text_of(controller.view())
    assert controller.trace.node is not None
    other = DomainsViewController(two_zones(WEB.replace("web", "db") + "---\n"), "web")
    other.handle("affinity", "podAffinity required")
    other.handle("affinity.selector", "app=db")
    assert verdict(other.view()) == "web: no node fits"
    assert "may go anywhere" not in text_of(other.view())


def test_pods_that_are_there_keep_others_out() -> None:
    """web asks for nothing; guard's own term forbids zone x."""
    controller = DomainsViewController(two_zones(GUARD), "web")
    (table,) = tables(controller)
    assert column(table, "Objecting") == {"x": "1", "y": "0"}
    assert column(table, "Verdict") == {"x": "fail rejected", "y": "pass allowed"}
    assert "✕ x: node(s) didn't satisfy existing pods anti-affinity rules" in text_of(controller.view())


def test_a_node_without_the_label_is_no_domain() -> None:
    """It has a row of its own, no count, and the plugin's reason."""
    bare = (NODES % ("z1", "z", "z1")).replace("topology.kubernetes.io/zone: z, ", "")
    controller = DomainsViewController(two_zones(bare), "web")
    controller.handle("when", "DoNotSchedule")
    row = cells(tables(controller)[0])[-1]
    assert (row[0], row[1], row[4]) == ("(without the label)", "–", "fail rejected")
    assert "(missing required label)" in text_of(controller.view())


def test_a_cordoned_zone_holds_the_minimum_down_unless_taints_are_honoured() -> None:
    """Zone y may not be used; it counts by default, and is left out with nodeTaintsPolicy: Honor."""
    tainted = (NODES % ("y1", "y", "y1")).replace(
        "status:", "spec: {taints: [{key: gone, effect: NoSchedule}]}\nstatus:"
    )
    there = WEB.replace("name: web", "name: w0").replace("spec:", "spec:\n  nodeName: x1") + "---\n"
    spread = f"""  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: {ZONE}
      whenUnsatisfiable: DoNotSchedule
      labelSelector: {{matchLabels: {{app: web}}}}
"""
    lab = Lab((NODES % ("x1", "x", "x1")) + tainted + there + WEB + spread)
    controller = DomainsViewController(lab, "web")
    assert controller.trace.node is None
    assert column(tables(controller)[0], "Skew") == {"x": "2 > 1", "y": "1 ≤ 1"}
    honour = Lab(
        (NODES % ("x1", "x", "x1")) + tainted + there + WEB + spread + "      nodeTaintsPolicy: Honor\n"
    )
    controller = DomainsViewController(honour, "web")
    assert controller.trace.node == "x1"
    assert column(tables(controller)[0], "Skew") == {"x": "1 ≤ 1", "y": "not counted"}


def test_two_constraints_are_edited_one_at_a_time_and_never_become_doubles() -> None:
    """The list picks one; what Kubernetes would refuse is refused and changes nothing."""
    constraint = "- {maxSkew: 1, topologyKey: %s, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}"
    manifest = WEB.replace("name: web", "name: two") + "  topologySpreadConstraints:\n"
    manifest += "".join(f"    {constraint % key}\n" for key in (ZONE, HOST))
    controller = domains(manifest)
    assert len(tables(controller)) == 2
    controller.handle("constraint", "1")
    controller.handle("skew", 4)
    assert [c["maxSkew"] for c in controller.pod["spec"]["topologySpreadConstraints"]] == [1, 4]
    with pytest.raises(LabError, match="refuses two constraints"):
        controller.handle("key", ZONE)
    assert controller.pod["spec"]["topologySpreadConstraints"][1]["topologyKey"] == HOST
    controller.handle("when", "none")
    assert len(tables(controller)) == 1


def test_as_written_undoes_every_change_and_another_pod_starts_afresh() -> None:
    """The button is disabled when there is nothing to undo."""
    controller = domains()
    assert controls(controller.view())["reset"]["disabled"]
    before = tables(controller)
    controller.handle("skew", 4)
    controller.handle("affinity", "podAffinity required")
    assert not controls(controller.view())["reset"]["disabled"]
    controller.handle("reset", None)
    assert tables(controller) == before
    controller.handle("pod", "default/big-0")
    assert controls(controller.view())["reset"]["disabled"]
    assert controls(controller.view())["when"]["value"] == "none"


def test_several_terms_stay_until_a_kind_is_chosen() -> None:
    """And come back on demand."""
    manifest = (
        WEB
        + """  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}
        - {topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: db}}}
"""
    )
    controller = domains(manifest)
    assert controls(controller.view())["affinity"]["value"] == "several"
    assert len(tables(controller)) == 2
    controller.handle("affinity", "podAffinity required")
    assert len(tables(controller)) == 1
    controller.handle("affinity", "several")
    assert len(tables(controller)) == 2


def test_every_control_has_a_name_in_both_languages(language: str) -> None:
    """Labels on all controls; headings and captions in the language."""
    controller = domains()
    controller.handle("when", "DoNotSchedule")
    controller.handle("affinity", "podAntiAffinity required")
    found = controls(controller.view())
    assert {"pod", "when", "key", "skew", "domains", "selector", "affinity", "affinity.key"} <= set(found)
    assert all(c["text"] for c in found.values())
    assert ("判定" in text_of(controller.view())) == (language == "zh")
    assert ("Verdict" in text_of(controller.view())) == (language == "en")


def test_a_thousand_hosts_are_cut_and_nothing_in_the_lab_changes() -> None:
    """Top and bottom of the list."""
    lab = Lab("nodes-1000")
    controller = DomainsViewController(lab, WEB)
    controller.handle("when", "DoNotSchedule")
    controller.handle("key", HOST)
    assert len(tables(controller)[0]["rows"]) < 40
    assert "970 more" in text_of(controller.view())
    assert (lab.history, lab.traces) == (0, [])


def test_as_a_widget_it_survives_nonsense() -> None:
    """Refused or shown as a notice; the next control works."""
    widget = domains_view(Lab("three-zones"), "web-7")
    for control, value in (
        ("skew", "x"),
        ("key", "nope"),
        ("when", "Maybe"),
        ("affinity", "love"),
        ("pod", "no"),
    ):
        widget.set(control, value)
    widget.set("when", "DoNotSchedule")
    assert repr(widget) == "<DomainsView: default/web-7 → b2>"
