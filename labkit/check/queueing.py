"""Checks of a learner's QueueSort plugin: is its `less` an order at all, and does it put pods in the order asked for?"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from typing import Any

from labkit.check.plugins import VISIBLE
from labkit.check.report import Case, Exercise, Words
from labkit.i18n import t

_PRIORITIES, _CPU = (0, 0, 10, 100), (100, 250, 500, 500, 1000, 2000)


def queue_sort(
    plugin: Any,
    key: Callable[[Any], Any],
    *,
    points: float,
    seeds: Iterable[int] = VISIBLE,
    hint: Words | None = None,
) -> Exercise:
    """Pods of a queue must come out in the order of `key(info)`, and `less` must obey the laws of an order.

    The pods have priorities, CPU requests and times of arrival drawn from the seed; `info` is what `less` gets.
    """
    exercise = Exercise(points)
    for number, seed in enumerate(seeds, 1):
        infos = _queue(seed)
        with exercise.case(f"queue {number}: the laws", f"队列 {number}：顺序的规律", hint=hint) as case:
            _laws(case, _less(case, plugin), infos)
        with exercise.case(f"queue {number}: who goes first", f"队列 {number}：谁先走", hint=hint) as case:
            _order(case, plugin, _less(case, plugin), infos, key)
    return exercise


def _queue(seed: int) -> list[Any]:
    from labkit.framework.node_info import QueuedPodInfo
    from labkit.objects.pod import Pod

    rng = random.Random(f"labkit-check/queue/{seed}")
    infos = []
    for i in range(8):
        cpu = rng.choice(_CPU)
        raw = {
            "metadata": {"name": f"pod-{i + 1}", "namespace": "default", "uid": f"u{i}"},
            "spec": {
                "priority": rng.choice(_PRIORITIES),
                "containers": [{"name": "c", "image": "a", "resources": {"requests": {"cpu": f"{cpu}m"}}}],
            },
        }
        from labkit.engine.informer import typed

        pod = typed(raw, "Pod")
        assert isinstance(pod, Pod)
        infos.append(QueuedPodInfo(pod, float(rng.randrange(6)), i))
    return infos


def _less(case: Case, plugin: Any) -> Callable[[Any, Any], bool]:
    made = plugin() if isinstance(plugin, type) else plugin
    less: Any = getattr(made, "less", None)
    if not callable(less):
        case.fail("the class has no method `less(self, a, b)`", "这个类没有方法 `less(self, a, b)`")

    def checked(a: Any, b: Any) -> bool:
        answer = less(a, b)
        if type(answer) is not bool:
            case.fail(
                f"less({_name(a)}, {_name(b)}) returned a {type(answer).__name__}, not True or False",
                f"less({_name(a)}, {_name(b)}) 返回了 {type(answer).__name__}，而不是 True 或 False",
            )
        return bool(answer)

    return checked


def _name(info: Any) -> str:
    return str(info.pod.metadata.name)


def _rows(infos: Iterable[Any]) -> list[list[str]]:
    from labkit.framework.node_info import pod_info

    return [
        [_name(i), str(i.pod.priority), f"{pod_info(i.pod).requested.milli_cpu}m", f"{i.timestamp:g}"]
        for i in infos
    ]


def _table(case: Case, infos: Iterable[Any]) -> None:
    case.table(["pod", t("priority", "优先级"), "cpu", t("arrived at (s)", "到达时间（秒）")], _rows(infos))


def _laws(case: Case, less: Callable[[Any, Any], bool], infos: list[Any]) -> None:
    for a in infos:
        if less(a, a):
            _table(case, [a])
            case.fail(
                f"{_name(a)} goes before itself: `less` must be strict",
                f"{_name(a)} 排在自己前面：`less` 必须是严格的",
            )
    for a, b in itertools.combinations(infos, 2):
        if less(a, b) and less(b, a):
            _table(case, [a, b])
            case.fail(
                f"{_name(a)} goes before {_name(b)}, and {_name(b)} before {_name(a)}: no heap can sort that",
                f"{_name(a)} 在 {_name(b)} 前面，{_name(b)} 又在 {_name(a)} 前面：没有堆能这样排序",
            )
    for a, b, c in itertools.permutations(infos, 3):
        if less(a, b) and less(b, c) and not less(a, c):
            _table(case, [a, b, c])
            names = ", ".join(map(_name, (a, b, c)))
            case.fail(
                f"of {names} each goes before the next, but the first not before the last",
                f"{names} 依次在前，但第一个却不在最后一个前面",
            )


def _order(
    case: Case, plugin: Any, less: Callable[[Any, Any], bool], infos: list[Any], key: Callable[[Any], Any]
) -> None:
    from labkit.engine.queue_heaps import Heap, sort_key

    failed: list[Exception] = []

    class Sorted:
        name = "Learner"

        def less(self, a: Any, b: Any) -> bool:
            try:
                return less(a, b)
            except Exception as e:
                failed.append(e)
                raise

    heap = Heap(sort_key(Sorted()))
    for info in infos:
        heap.push(info)
    if failed:
        # The queue goes on without an order; the learner is to see why.
        raise failed[0]
    got = []
    while (info := heap.pop()) is not None:
        got.append(_name(info))
    # Equal pods keep the order of their arrival in the heap.
    wanted = [_name(i) for i in sorted(infos, key=key)]
    _table(case, sorted(infos, key=key))
    case.equal(got, wanted, "the order", "顺序")
