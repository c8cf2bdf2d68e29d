"""Members of `labkit.several` and what is written down about them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from labkit.engine.informer import typed
from labkit.errors import LabError
from labkit.framework.requests import requests_of_incoming_pod
from labkit.framework.resource import Resource
from labkit.i18n import t
from labkit.objects.meta import RawObject
from labkit.reading import parse_duration


@dataclass(frozen=True)
class Member:
    """One scheduler process: the `schedulerName` that it serves, and its `identity` (unique; default: the name).

    `leader_election`: it works only while it holds its lease, which members of the same `lease` (default: the name)
    share. `config`: a KubeSchedulerConfiguration; `delay`: seconds until it hears of a change.
    """

    name: str = "default-scheduler"
    identity: str = ""
    leader_election: bool = False
    config: Any = None
    delay: float | str = 0.0
    lease: str = ""
    plugins: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Entry:
    """Something that happened at `time` (virtual seconds since the start); `kind` is one of

    decided, bound, conflict, rejected, leading, standing-by, stopped, kubelet. `text` says more, in the cluster's words.
    With a decision for a node come the other pods that the member counted on it (`saw`), and those that the API server
    had there (`there`).
    """

    time: float
    member: str
    kind: str
    pod: str = ""
    node: str = ""
    text: str = ""
    saw: tuple[str, ...] = ()
    there: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f" → {self.node}" if self.node else ""
        said = f": {self.text}" if self.text else ""
        return f"{self.time:8.3f} s  {self.member:<18} {self.kind:<11} {self.pod}{where}{said}"


def named(member: Member) -> Member:
    """The member, with its name for an identity that is not given."""
    return member if member.identity else replace(member, identity=member.name)


def check(members: list[Member]) -> None:
    """LabError when these cannot be members of one lab."""
    if not members:
        raise LabError(
            t("there must be at least one scheduler", "至少要有一个调度器"), hint="members=[Member()]"
        )
    seen: set[str] = set()
    for member in members:
        if member.identity in seen:
            raise LabError(
                t(
                    f"two members have the identity {member.identity!r}",
                    f"两个成员的 identity 都是 {member.identity!r}",
                ),
                hint=t(
                    "give each its own: Member(name, identity)", "给每个成员各自的：Member(name, identity)"
                ),
            )
        seen.add(member.identity)
        if parse_duration(member.delay) < 0:
            raise LabError(
                t(
                    f"member {member.identity}: delay is {member.delay}, news cannot come before it happens",
                    f"成员 {member.identity}：delay 为 {member.delay}，消息不可能先于事情到达",
                ),
                hint=t("give 0 or more seconds", "请给 0 或更多秒"),
            )


def overcommitted(
    nodes: list[RawObject], bound: Iterable[tuple[str, RawObject]]
) -> dict[str, dict[str, tuple[int, int]]]:
    """Nodes to which more was bound than fits: node -> resource -> (bound, allocatable).

    Pods that the node refused for lack of room count, pods that ended otherwise do not.
    """
    sums: dict[str, Resource] = {}
    counts: dict[str, int] = {}
    for node, raw in bound:
        status = raw.get("status") or {}
        refused = status.get("phase") == "Failed" and str(status.get("reason", "")).startswith("OutOf")
        if status.get("phase") in ("Succeeded", "Failed") and not refused:
            continue
        pod: Any = typed(raw, "Pod")
        sums.setdefault(node, Resource()).add(requests_of_incoming_pod(pod))
        counts[node] = counts.get(node, 0) + 1
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for raw in nodes:
        name = raw["metadata"]["name"]
        if name not in sums:
            continue
        node_object: Any = typed(raw, "Node")
        offered, wanted = Resource.of_allocatable(node_object), sums[name]
        wanted.allowed_pod_number = counts[name]
        names = ["cpu", "memory", "ephemeral-storage", "pods", *sorted(wanted.scalars)]
        over = {n: (wanted.get(n), offered.get(n)) for n in names if wanted.get(n) > offered.get(n)}
        if over:
            found[name] = over
    return found
