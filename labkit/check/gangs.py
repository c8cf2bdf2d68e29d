"""Checks of a gang plugin: all members of a gang are bound together or none is, and nothing stays booked.

Each case plays one story in a lab, in virtual time. Gangs have the labels of the course: `gang-id`, `gang-min-count`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from labkit.check.plugins import VISIBLE, own_frames
from labkit.check.report import Case, Exercise, Words, show
from labkit.i18n import t

if TYPE_CHECKING:
    from labkit.lab import Lab

Json = dict[str, Any]
_NODE_CPU, _STEP = 4, 10.0
#: The weight of a case that the broken plugin passes too.
_AS_BEFORE = 0.2


def gang(
    plugin: Any,
    *,
    points: float,
    timeout: float = 60,
    seeds: Iterable[int] = VISIBLE,
    given: type | None = None,
    hint: Words | None = None,
) -> Exercise:
    """The learner's Permit plugin (a class) must make gangs start together, and give up after `timeout` seconds.

    Six cases a seed, on gangs of three to five members. Pass `seeds=check.HIDDEN` (or a part of them) in hidden tests.
    `given` is the broken plugin that is to be mended: what it can do already counts a fifth.
    """
    exercise = Exercise(points)
    chosen = list(seeds)
    weights = [
        weight * (_AS_BEFORE if given is not None and _passes(given, story, chosen[0], timeout) else 1)
        for _, weight, story in _STORIES
    ]
    for number, seed in enumerate(chosen, 1):
        for ((en, zh), _, story), weight in zip(_STORIES, weights, strict=True):
            with exercise.case(f"{en} ({number})", f"{zh}（{number}）", weight=weight, hint=hint) as case:
                _tell(case, plugin, story, seed, timeout)
    return exercise


def _passes(plugin: type, story: Callable[[_Play], None], seed: int, timeout: float) -> bool:
    trial = Exercise(1)
    with trial.case("as given", "给出的插件") as case:
        _tell(case, plugin, story, seed, timeout)
    return not trial.failures


def _tell(case: Case, plugin: Any, story: Callable[[_Play], None], seed: int, timeout: float) -> None:
    _is_gang_plugin(case, plugin)
    story(_Play(case, plugin, random.Random(f"labkit-check/gang/{seed}"), timeout))


def _is_gang_plugin(case: Case, plugin: Any) -> None:
    if not isinstance(plugin, type) or not callable(getattr(plugin, "permit", None)):
        case.fail(
            f"A class with a method `permit` is needed, this is {show(plugin)}.",
            f"需要一个有 `permit` 方法的类，这里是 {show(plugin)}。",
        )
    if callable(getattr(plugin, "unreserve", None)) and not callable(getattr(plugin, "reserve", None)):
        case.fail(
            "Unreserve is only called for plugins that have a method `reserve`.",
            "只有实现了 `reserve` 方法的插件才会被调用 Unreserve。",
        )


class _Play:
    """A lab with the learner's plugin, and what may never happen in it."""

    def __init__(self, case: Case, plugin: type, rng: random.Random, timeout: float) -> None:
        from labkit.check.plugins import _made
        from labkit.lab import Lab

        self.case = case
        self.size = rng.randint(3, 5)
        self.cpu = rng.choice((3, 4))
        self.timeout = timeout
        self.lab: Lab = Lab([], plugins=[_made(plugin)])

    # --- what happens ---------------------------------------------------------------------------------------

    def nodes(self, count: int) -> None:
        """That many more nodes, each with room for one member."""
        first = len(self.lab.look("Node")) + 1
        self.lab.apply([_node(f"n{first + i}", str(_NODE_CPU)) for i in range(count)])
        self.go()

    def member(self, name: str, gang: str = "train", namespace: str = "default") -> None:
        """One more member, and its attempt."""
        labels = {"gang-id": gang, "gang-min-count": str(self.size)}
        self.lab.apply(_pod(name, self.cpu, labels=labels, namespace=namespace))
        self.go()

    def other(self, name: str, node: str | None = None) -> None:
        """A pod of no gang that wants half of a node, of `node` if given."""
        self.lab.apply(_pod(name, 2, node=node))
        self.go()

    def delete(self, name: str) -> None:
        """A member is deleted."""
        self.lab.delete("Pod", name)
        self.go()

    def go(self) -> None:
        """All that are ready are tried."""
        self.lab.run()
        self._look()

    def wait(self, seconds: float) -> None:
        """Time passes; in small steps, so that nothing is overlooked."""
        done = 0.0
        while done < seconds:
            step = min(_STEP, seconds - done)
            self.lab.advance(step)
            done += step
            self._look()

    # --- what must hold -------------------------------------------------------------------------------------

    def _look(self) -> None:
        """No errors, and no gang runs in part."""
        self._table()
        for trace in self.lab.traces:
            problem = trace.error
            if problem is None or problem.is_rejected:
                text = next((n for n in trace.notes if "Traceback" in n), "")
            else:
                text = problem.traceback or problem.message
            if "NotImplementedError" in text:
                raise NotImplementedError
            if text:
                self.case.detail = own_frames(text)
                last = text.strip().splitlines()[-1]
                self.case.fail(f"your plugin failed: {last}", f"你的插件出错：{last}")
        self._whole()

    def _whole(self) -> None:
        """Bound members of a gang: none, or enough."""
        counts: dict[str, int] = {}
        for pod in self.lab.look("Pod"):
            if key := _gang_of(pod):
                counts[key] = counts.get(key, 0) + bool(pod["spec"].get("nodeName"))
        for key, bound in counts.items():
            if 0 < bound < self.size:
                when = f"{self.lab.now:g}"
                self.case.fail(
                    f"t + {when} s: {bound} of {self.size} members of {key} are bound: a gang starts whole or not at all",
                    f"t + {when} 秒：{key} 的 {self.size} 个成员中有 {bound} 个已绑定：gang 要么整体启动，要么都不启动",
                )

    def bound(self, *names: str) -> None:
        """These pods have a node."""
        for name in names:
            if self._node_of(name) is None:
                why = self._why(name)
                self.case.fail(
                    f"t + {self.lab.now:g} s: pod {name} should be bound, but is not{why}",
                    f"t + {self.lab.now:g} 秒：Pod {name} 应当已绑定，却没有{why}",
                )

    def held(self, *names: str) -> None:
        """These pods wait at Permit."""
        waiting = {w.pod.name: w for w in self.lab.scheduler.waiting.list()}
        for name in names:
            if name not in waiting:
                why = self._why(name)
                self.case.fail(
                    f"t + {self.lab.now:g} s: pod {name} should be held by Permit, but is not{why}",
                    f"t + {self.lab.now:g} 秒：Pod {name} 应当被 Permit 扣住，却没有{why}",
                )

    def times_out(self, name: str) -> None:
        """This pod waits for the time-out asked for."""
        (waiting,) = [w for w in self.lab.scheduler.waiting.list() if w.pod.name == name]
        seconds = min(waiting.deadlines.values()) - waiting.started
        self.case.equal(
            float(seconds),
            float(self.timeout),
            f"seconds that {name} waits at most",
            f"{name} 最多等待的秒数",
        )

    def gave_up(self, waits: dict[str, Any], gone: str) -> None:
        """None of these waits goes on; the pods may wait again, from the start."""
        for waiting in self.lab.scheduler.waiting.list():
            name = waiting.pod.name
            if waits.get(name) is waiting:
                self.case.fail(
                    f"t + {self.lab.now:g} s: {gone} was deleted while it waited, but {name} waits on as before: when one "
                    "member gives up, Unreserve must reject all that wait",
                    f"t + {self.lab.now:g} 秒：{gone} 在等待时被删除，{name} 却照旧等着：一个成员放弃时，Unreserve 必须拒绝所有等待的成员",
                )

    def _node_of(self, name: str, namespace: str = "default") -> str | None:
        for pod in self.lab.look("Pod"):
            if pod["metadata"]["name"] == name and pod["metadata"]["namespace"] == namespace:
                return pod["spec"].get("nodeName") or None
        return None

    def _why(self, name: str) -> str:
        if any(w.pod.name == name for w in self.lab.scheduler.waiting.list()):
            return t(" (Permit holds it)", "（被 Permit 扣住）")
        message = next((x.message for x in reversed(self.lab.traces) if x.pod.endswith(f"/{name}")), None)
        if message:
            return f" ({message})" if t("en", "zh") == "en" else f"（{message}）"
        return ""

    def _table(self) -> None:
        holds = {w.pod.key: w.pod.spec.node_name for w in self.lab.scheduler.waiting.list()}
        rows = []
        for pod in self.lab.look("Pod"):
            key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            if node := pod["spec"].get("nodeName"):
                state = t(f"bound to {node}", f"已绑定到 {node}")
            elif key in holds:
                state = t(f"held on {holds[key]}", f"扣在 {holds[key]} 上")
            else:
                state = t("in the queue", "在队列中")
            rows.append([key.removeprefix("default/"), _gang_of(pod) or "–", state])
        self.case.table(["pod", f"gang (min {self.size})", t("state", "状态")], rows)


def _names(count: int, first: int = 0) -> list[str]:
    return [f"m{i}" for i in range(first, first + count)]


def _together(play: _Play) -> None:
    play.nodes(play.size)
    *most, last = _names(play.size)
    for name in most:
        play.member(name)
        play.held(name)
    play.held(*most)
    play.member(last)
    play.wait(1)
    play.bound(*most, last)


def _one_more(play: _Play) -> None:
    _together(play)
    play.nodes(1)
    play.member("extra")
    play.wait(1)
    play.bound("extra")


def _gives_up(play: _Play) -> None:
    play.nodes(play.size - 1)
    members = _names(play.size - 1)
    for name in members:
        play.member(name)
        play.wait(_STEP)
    play.held(*members)
    play.times_out(members[-1])
    waiting = {w.pod.name: w.pod.spec.node_name for w in play.lab.scheduler.waiting.list()}
    play.other("web", waiting[members[-1]])
    play.wait(play.timeout - _STEP * len(members) + 1)
    if play._node_of("web") is None:
        play.case.fail(
            f"{members[0]} timed out, but {members[-1]} still keeps its room from pod web: when one member gives up, "
            "Unreserve must reject all that wait",
            f"{members[0]} 已超时，但 {members[-1]} 仍占着资源，Pod web 得不到：一个成员放弃时，Unreserve 必须拒绝所有等待的成员",
        )


def _later(play: _Play) -> None:
    play.nodes(play.size - 1)
    members = _names(play.size)
    for name in members:
        play.member(name)
    play.held(*members[:-1])
    play.wait(play.timeout * 3 + 5)
    play.nodes(1)
    play.wait(play.timeout)
    play.bound(*members)


def _deleted(play: _Play) -> None:
    play.nodes(play.size + 1)
    first, *rest = _names(play.size - 1)
    for name in (first, *rest):
        play.member(name)
    play.held(first, *rest)
    before = {w.pod.name: w for w in play.lab.scheduler.waiting.list()}
    play.delete(first)
    play.gave_up({name: before[name] for name in rest}, first)
    play.member("new-1")
    play.wait(play.timeout / 4)
    play.member("new-2")
    # What gave up may be waiting for an event.
    play.lab.apply(_node("tiny", "100m"))
    play.wait(5)
    play.bound(*rest, "new-1", "new-2")


def _apart(play: _Play) -> None:
    play.nodes(play.size + 4)
    *most, last = _names(play.size)
    for name in most:
        play.member(name)
    play.member("b0", gang="other")
    play.member("c0", namespace="team")
    play.other("alone")
    play.bound("alone")
    play.held(*most, "b0", "c0")
    play.member(last)
    play.wait(1)
    play.bound(*most, last)
    play.held("b0", "c0")


_STORIES: tuple[tuple[Words, float, Callable[[_Play], None]], ...] = (
    (("room for all: they start together", "资源足够：一起启动"), 1, _together),
    (("one more joins a running gang", "再加一个成员到运行中的 gang"), 1, _one_more),
    (("one is missing: all give up", "缺一个：全部放弃"), 3, _gives_up),
    (("room for the last one comes late", "最后一个的资源来得晚"), 2, _later),
    (("a waiting member is deleted", "等待中的成员被删除"), 2, _deleted),
    (("two gangs, two namespaces, and a pod alone", "两个 gang、两个命名空间和一个单独的 Pod"), 1, _apart),
)


def _gang_of(pod: Json) -> str | None:
    gang = (pod["metadata"].get("labels") or {}).get("gang-id")
    return f"{pod['metadata']['namespace']}/{gang}" if gang else None


def _node(name: str, cpu: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"}},
    }


def _pod(
    name: str,
    cpu: int,
    *,
    labels: dict[str, str] | None = None,
    namespace: str = "default",
    node: str | None = None,
) -> Json:
    container = {"name": "c", "image": "app", "resources": {"requests": {"cpu": str(cpu)}}}
    spec: Json = {"containers": [container]}
    if node is not None:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    meta = {"name": name, "namespace": namespace, "labels": dict(labels or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
