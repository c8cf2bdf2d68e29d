"""Several schedulers on one cluster: what goes wrong, who notices, in which words."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.errors import InputError, LabError
from labkit.several import Member, SeveralSchedulers


def node(name: str, cpu: str = "4") -> dict[str, Any]:
    """A node."""
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}}


def pod(name: str, cpu: str, scheduler: str = "default-scheduler") -> dict[str, Any]:
    """A pod for a scheduler."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {"schedulerName": scheduler, "containers": [container]}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def said(lab: SeveralSchedulers, *kinds: str) -> list[tuple[str, str, str]]:
    """(member, kind, pod) of the entries of some kinds."""
    return [(e.member, e.kind, e.pod) for e in lab.log if e.kind in kinds]


def overcommit() -> SeveralSchedulers:
    """Two names, a pod of 3 CPUs each, one node of 4."""
    members = [Member(identity="a", delay=1), Member("batch", "b", delay="1s")]
    return SeveralSchedulers([node("n1"), pod("first", "3"), pod("second", "3", "batch")], members)


def test_two_names_overcommit_a_node_and_the_kubelet_refuses() -> None:
    """Both bindings succeed, for neither cache knows of the other; the node takes one pod and fails the other."""
    lab = overcommit()
    lab.run()
    assert said(lab, "bound", "rejected") == [
        ("a", "bound", "default/first"),
        ("b", "bound", "default/second"),
        ("n1", "rejected", "default/second"),
    ]
    first, second = (p["status"] for p in lab.pods())
    assert first["phase"] == "Running"
    assert (second["phase"], second["reason"]) == ("Failed", "OutOfcpu")
    assert second["message"] == (
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 3000, used: 3000, capacity: 4000"
    )
    assert lab.summary() == {
        "bound": 2,
        "conflicts": 0,
        "rejected": 1,
        "overcommitted": {"n1": {"cpu": (6000, 4000)}},
    }
    assert any(e["reason"] == "OutOfcpu" for e in lab.events())


def test_without_delay_the_second_scheduler_knows_better() -> None:
    """News that arrive at once leave no room for the race: the second pod stays Pending and is told why."""
    lab = SeveralSchedulers(
        [node("n1"), pod("first", "3"), pod("second", "3", "batch")],
        [Member(identity="a"), Member("batch", "b")],
    )
    lab.run()
    assert lab.summary()["bound"] == 1
    told = next(e for e in lab.log if e.member == "b")
    assert told.text.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_same_name_without_election_conflicts() -> None:
    """Both try the same pods: the first binding wins, the second is a 409 in the API server's words."""
    lab = SeveralSchedulers(
        [node("n1"), node("n2"), pod("p1", "1"), pod("p2", "1")],
        [Member(identity="a", delay=0.5), Member(identity="b", delay=0.5)],
    )
    lab.run()
    conflicts = [e for e in lab.log if e.kind == "conflict"]
    assert [(e.member, e.pod) for e in conflicts] == [("b", "default/p1"), ("b", "default/p2")]
    where = lab.pods()[0]["spec"]["nodeName"]
    assert conflicts[0].text == (
        f'Operation cannot be fulfilled on pods/binding "p1": pod p1 is already assigned to node "{where}"'
    )
    assert lab.summary()["bound"] == 2
    assert lab.summary()["overcommitted"] == {}


def elected() -> SeveralSchedulers:
    """Two of the same name, one lease."""
    members = [Member(identity=i, leader_election=True, delay=0.1) for i in "ab"]
    return SeveralSchedulers([node("n1"), pod("p1", "1")], members)


def test_election_one_works_the_other_stands_by() -> None:
    """No conflict; the lease names the holder."""
    lab = elected()
    lab.run()
    assert said(lab, "leading", "standing-by", "bound", "conflict") == [
        ("a", "leading", ""),
        ("b", "standing-by", ""),
        ("a", "bound", "default/p1"),
    ]
    lease = lab.client.get("Lease", "default-scheduler", "kube-system")["spec"]
    assert (lease["holderIdentity"], lease["leaseTransitions"]) == ("a", 0)


def test_hand_over_is_quick_after_stop_and_slow_after_kill() -> None:
    """A released lease is taken at the next try, within 4.4 s; an abandoned one only after its 15 s."""
    times = {}
    for how in ("stop", "kill"):
        lab = elected()
        lab.run()
        lab.advance(7)
        begin = lab.now
        getattr(lab, how)("a")
        lab.apply(pod("late", "1"))
        assert lab.leader() is None
        lab.advance(40)
        took = next(e for e in lab.log if e.kind == "leading" and e.member == "b")
        times[how] = took.time - begin
        assert ("b", "bound", "default/late") in said(lab, "bound")
        assert lab.client.get("Lease", "default-scheduler", "kube-system")["spec"]["leaseTransitions"] == 1
    assert times["stop"] <= 4.4 + 1
    assert 13 < times["kill"] <= 15 + 2 * 4.4


def test_second_name_behind_the_same_lease_stands_by_for_ever() -> None:
    """A second scheduler needs a lease name of its own: else its pods stay Pending."""
    members = [
        Member(identity="a", leader_election=True, lease="kube-scheduler"),
        Member("batch", "b", leader_election=True, lease="kube-scheduler"),
    ]
    lab = SeveralSchedulers([node("n1"), pod("p", "1", "batch")], members)
    lab.run()
    lab.advance("10m")
    assert lab.leader("batch") is None
    assert not lab.pods()[0]["spec"].get("nodeName")


def test_same_seed_same_log_and_reset() -> None:
    """Two labs agree entry by entry, and so does one that began anew; another seed may pause otherwise."""
    first, second = overcommit(), overcommit()
    first.run()
    second.run()
    assert first.log == second.log
    assert first.log
    kept = list(first.log)
    first.reset()
    assert first.log == []
    assert first.now == 0
    first.run()
    assert first.log == kept


def test_step_gives_the_log_piece_by_piece() -> None:
    """Steps add up to a run; at the end a step is empty."""
    whole, lab = overcommit(), overcommit()
    whole.run()
    pieces = []
    while piece := lab.step():
        pieces += piece
    assert pieces == whole.log
    assert lab.step() == []


def test_members_that_cannot_be() -> None:
    """Each is refused by name."""
    with pytest.raises(LabError, match="two members have the identity 'x'"):
        SeveralSchedulers(None, [Member(identity="x"), Member(identity="x")])
    with pytest.raises(LabError, match="at least one"):
        SeveralSchedulers(None, [])
    with pytest.raises(LabError, match="delay is -1"):
        SeveralSchedulers(None, [Member(delay=-1)])
    with pytest.raises(InputError, match="is not a duration"):
        SeveralSchedulers(None, [Member(delay="soon")])
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    with pytest.raises(LabError, match="no profile 'batch'"):
        SeveralSchedulers(None, [Member("batch", config=config)])
    with pytest.raises(LabError, match="no member 'c'"):
        overcommit().stop("c")
    with pytest.raises(InputError, match="Pod default/p"):
        SeveralSchedulers({"kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": {}})


def test_a_decision_says_what_its_scheduler_counted_and_what_was_there() -> None:
    """b counts nothing on n1, where a has bound a pod; a second later both count it."""
    lab = overcommit()
    lab.run()
    told = {e.member: (e.saw, e.there) for e in lab.log if e.kind == "decided"}
    assert told == {"a": ((), ()), "b": ((), ("default/first",))}
    assert lab.counted("b") == {"n1": {"default/first": False}}


def test_an_assumed_pod_is_counted_as_assumed() -> None:
    """Until the news of its own binding has arrived."""
    lab = overcommit()
    lab.step()
    assert lab.counted("a") == {"n1": {"default/first": True}}
    assert lab.counted("b") == {"n1": {}}
    with pytest.raises(LabError, match="no member"):
        lab.counted("c")


def test_the_state_of_a_member() -> None:
    """Works, stands by, has stopped."""
    members = [Member(identity="a", leader_election=True), Member(identity="b", leader_election=True)]
    lab = SeveralSchedulers([node("n1")], members)
    assert (lab.state("a"), lab.state("b")) == ("working", "standing-by")
    lab.stop("a")
    lab.advance(10)
    assert (lab.state("a"), lab.state("b")) == ("stopped", "working")
