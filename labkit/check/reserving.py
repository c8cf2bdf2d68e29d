"""Checks of a plugin that books something outside the cluster: Reserve, PreBind, Unreserve, PostBind.

The plugin works in a lab beside a saboteur that holds pods at Permit and makes bindings fail. Whatever happens,
nothing may leak, nothing may be promised twice, and the scheduling cycle may not wait for a server.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from labkit.check.plugins import VISIBLE
from labkit.check.report import Case, Exercise, Words, show
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.i18n import t

#: Pods with this label want a ticket.
LABEL = "ticket"
_OUTSIDE = "–"


class TicketServer:
    """A service outside the cluster with `total` tickets. `holders` are the UIDs of the pods that hold one."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.holders: set[str] = set()
        #: (extension point during which it was called, call), for checks.
        self.calls: list[tuple[str, str]] = []
        self._point = _OUTSIDE

    @property
    def free(self) -> int:
        """Tickets that nobody holds."""
        return self.total - len(self.holders)

    def take(self, holder: str) -> None:
        """Give `holder` a ticket; it keeps the one that it has. RuntimeError when none is left."""
        self.calls.append((self._point, "take"))
        if holder not in self.holders and self.free < 1:
            raise RuntimeError("no ticket is left")
        self.holders.add(holder)

    def give_back(self, holder: str) -> None:
        """Take it back; nothing happens when `holder` has none."""
        self.calls.append((self._point, "give_back"))
        self.holders.discard(holder)


class _Probe(Plugin):
    """Runs before the learner's plugin at each point, and tells the server where the scheduler is."""

    def __init__(self, server: TicketServer) -> None:
        super().__init__()
        self.server = server

    def reserve(self, state: Any, pod: Any, node_name: str) -> Status | None:
        self.server._point = "Reserve"
        return None

    def unreserve(self, state: Any, pod: Any, node_name: str) -> None:
        # Unreserve runs in reverse order: after the learner's.
        self.server._point = _OUTSIDE

    def permit(self, state: Any, pod: Any, node_name: str) -> tuple[Status | None, float]:
        self.server._point = "Permit"
        return None, 0.0

    def pre_bind_pre_flight(self, state: Any, pod: Any, node_name: str) -> Status | None:
        self.server._point = "PreBindPreFlight"
        return None

    def pre_bind(self, state: Any, pod: Any, node_name: str) -> Status | None:
        self.server._point = "PreBind"
        return None


class _Saboteur(Plugin):
    """Holds some pods at Permit for ten seconds, and lets the bindings of others fail."""

    def __init__(self, held: set[str], refused: set[str], broken: set[str]) -> None:
        super().__init__()
        self.held, self.refused, self.broken = held, refused, broken

    def permit(self, state: Any, pod: Any, node_name: str) -> tuple[Status | None, float]:
        if pod.name in self.refused:
            return Status.wait("waits for nobody"), 10.0
        if pod.name in self.held and self.handle is not None:
            self.handle.clock.call_at(self.handle.clock.now() + 5, lambda: self._allow(pod.uid))
            return Status.wait("waits for a while"), 60.0
        return None, 0.0

    def _allow(self, uid: str) -> None:
        assert self.handle is not None
        waiting = self.handle.get_waiting_pod(uid)
        if waiting is not None:
            waiting.allow(self.name)

    def pre_bind_pre_flight(self, state: Any, pod: Any, node_name: str) -> Status | None:
        return None

    def pre_bind(self, state: Any, pod: Any, node_name: str) -> Status | None:
        if pod.name in self.broken:
            return Status.as_error_of("the disk is not there yet")
        return None


def reserving(
    make: Any,
    *,
    points: float,
    seeds: Iterable[int] = VISIBLE,
    hint: Words | None = None,
) -> Exercise:
    """`make(server)` gives the learner's plugin; pods with the label `ticket` need one of the server's tickets.

    Each seed is a lab of five to eight pods, one of which is held at Permit, one refused there, and one can never be bound.
    """
    exercise = Exercise(points)
    for number, seed in enumerate(seeds, 1):
        for en, zh, judge in _CASES:
            with exercise.case(f"{en} ({number})", f"{zh}（{number}）", hint=hint) as case:
                if not callable(make):
                    case.fail(f"a class is expected, got {show(make)}", f"应为一个类，得到 {show(make)}")
                judge(case, _Run(make, seed))
    return exercise


class _Run:
    """What happened in one lab."""

    def __init__(self, make: Any, seed: int) -> None:
        from labkit.lab import Lab

        rng = random.Random(f"labkit-check/reserving/{seed}")
        names = [f"pod-{i + 1}" for i in range(rng.randint(5, 8))]
        # The first is refused, the second fails behind PreBind, the third is held while others come.
        wanting = {*names[:4], *rng.sample(names[4:], rng.randint(0, len(names) - 4))}
        self.refused = {names[0], names[1]}
        self.server = TicketServer(rng.randint(1, 2))
        self.wanting = wanting
        saboteur = _Saboteur({names[2]}, {names[0]}, {names[1]})
        plugin = make(self.server)
        lab = Lab(_CLUSTER, plugins=[_Probe(self.server), plugin, saboteur])
        for name in names:
            lab.apply(_pod(name, name in wanting))
        self.errors: list[str] = []
        traces = lab.run()
        for _ in range(8):
            traces += lab.advance(30)
        #: Errors of the learner's plugin, not of the saboteur.
        for trace in traces:
            text = trace.message or ""
            failed = trace.error is not None and trace.error.code.label == "Error"
            if failed and "the disk is not there yet" not in text:
                if "NotImplementedError" in text:
                    raise NotImplementedError
                self.errors.append(f"{trace.pod}: {text}")
        pods = {p["metadata"]["name"]: p for p in lab.pods()}
        self.uid = {name: p["metadata"]["uid"] for name, p in pods.items()}
        self.bound = {name for name, p in pods.items() if p["spec"].get("nodeName")}
        self.holding = {name for name in names if self.uid[name] in self.server.holders}

    def show(self, case: Case) -> None:
        """The pods, for the table of a failed case."""
        case.table(
            ["pod", t("wants a ticket", "需要票"), t("bound", "已绑定"), t("holds a ticket", "持有票")],
            [
                [name, _yes(name in self.wanting), _yes(name in self.bound), _yes(name in self.holding)]
                for name in sorted(self.uid)
            ],
        )


def _yes(value: bool) -> str:
    return t("yes", "是") if value else t("no", "否")


def _no_leak(case: Case, run: _Run) -> None:
    run.show(case)
    for name in sorted(run.holding - run.bound):
        case.fail(
            f"{name} is not bound and still holds a ticket: Unreserve must give it back",
            f"{name} 没有绑定却仍持有票：Unreserve 必须归还",
        )


def _bound_hold(case: Case, run: _Run) -> None:
    run.show(case)
    for name in sorted(run.bound & run.wanting - run.holding):
        case.fail(f"{name} is bound without a ticket", f"{name} 没有票就绑定了")
    for name in sorted(run.holding - run.wanting):
        case.fail(f"{name} did not ask for a ticket and holds one", f"{name} 没有要票却持有一张")


def _nobody_forgotten(case: Case, run: _Run) -> None:
    run.show(case)
    for name in sorted(set(run.uid) - run.wanting - run.bound - run.refused):
        case.fail(
            f"{name} wants no ticket and is not bound: it is none of the plugin's business",
            f"{name} 不需要票却没有绑定：插件不该管它",
        )
    eligible = run.wanting - run.refused
    wanted = min(run.server.total, len(eligible))
    got = len(eligible & run.bound)
    if got != wanted:
        case.fail(
            f"{run.server.total} tickets, {len(eligible)} pods that could use them: {wanted} should be bound, {got} are. "
            "A booking that is never cancelled keeps others away",
            f"{run.server.total} 张票，{len(eligible)} 个 Pod 可以使用：应绑定 {wanted} 个，实际 {got} 个。从不取消的预订会挡住别人",
        )


def _no_error(case: Case, run: _Run) -> None:
    if run.errors:
        case.fail(
            f"no attempt may end in an error when tickets run out: {run.errors[0]}",
            f"票用完时，尝试不应以错误结束：{run.errors[0]}",
        )


def _no_waiting(case: Case, run: _Run) -> None:
    for point, call in run.server.calls:
        if call == "take" and point != "PreBind":
            case.fail(
                f"server.take was called during {point}: every pod in the queue waits for that call. It belongs into PreBind",
                f"server.take 在 {point} 中被调用：队列里所有 Pod 都要等它。它应放在 PreBind",
            )
    if not any(call == "take" for _, call in run.server.calls):
        case.fail("server.take was never called", "server.take 从未被调用")


def _asks(case: Case, run: _Run) -> None:
    _no_error(case, run)
    _no_waiting(case, run)
    _bound_hold(case, run)


def _gives_back(case: Case, run: _Run) -> None:
    _no_leak(case, run)
    _nobody_forgotten(case, run)


_CASES: tuple[tuple[str, str, Callable[[Case, _Run], None]], ...] = (
    ("tickets are booked, then taken", "先预订，再取票", _asks),
    ("what is not needed is given back", "用不上的都归还", _gives_back),
)
_CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "8", memory: 16Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
status: {allocatable: {cpu: "8", memory: 16Gi, pods: "110"}}
"""


def _pod(name: str, wants: bool) -> dict[str, Any]:
    labels = {LABEL: "yes"} if wants else {}
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "a:1", "resources": resources}]},
    }
