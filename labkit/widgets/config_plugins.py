"""Which plugins run where, of a running lab and of a configuration, in one form to compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from labkit.config import SchedulerConfig
from labkit.config.points import CONFIG_KEYS
from labkit.engine.build import build_frameworks
from labkit.engine.framework import Framework
from labkit.engine.nominator import Nominator
from labkit.engine.services import Services
from labkit.framework.clock import VirtualClock
from labkit.framework.plugin import plugin_name
from labkit.i18n import t
from labkit.lab import Lab
from labkit.plugins.registry import IN_TREE
from labkit.what_if import gates_of, own_plugins
from labkit.widgets import view as v
from labkit.widgets.view import Block

#: Extension point -> (plugin, weight) in call order.
Running = dict[str, list[tuple[str, int]]]
#: In the order in which a pod meets them.
POINTS: tuple[str, ...] = (
    "pre_enqueue",
    "queue_sort",
    "pre_filter",
    "filter",
    "post_filter",
    "pre_score",
    "score",
    "reserve",
    "permit",
    "pre_bind",
    "bind",
    "post_bind",
    "placement_generate",
    "placement_score",
)
WEIGHTED = ("score", "placement_score")


def running(frameworks: Mapping[str, Framework]) -> dict[str, Running]:
    """Profile -> what it runs."""
    found: dict[str, Running] = {}
    for profile, framework in frameworks.items():
        weights = framework.weights()
        points: Running = {}
        for point in POINTS[:-2]:
            names = [plugin_name(p) for p in framework.plugins(point)]
            points[point] = [(n, weights.get(n, 0) if point == "score" else 0) for n in names]
        for point in POINTS[-2:]:
            points[point] = [(plugin_name(p), w) for p, w in framework.placement.get(point, [])]
        found[profile] = {point: entries for point, entries in points.items() if entries}
    return found


def would_run(lab: Lab, config: SchedulerConfig) -> dict[str, Running]:
    """What `lab` would run if it were started with `config`. ConfigError of stage "init" when it would not start."""
    services = Services(clock=VirtualClock(lab.clock.now()), nominator=Nominator())
    return running(build_frameworks(config, services, gates_of(lab), own_plugins(lab)))


def no_effect(config: SchedulerConfig, known: Iterable[str]) -> list[tuple[str, str, str]]:
    """(profile, point, name) of `disabled` entries that name no plugin: accepted, and good for nothing."""
    names = {*IN_TREE, *known, "*"}
    return [
        (profile.scheduler_name, CONFIG_KEYS[point], name)
        for profile in config.profiles
        for point, plugin_set in profile.plugins.items()
        for name in plugin_set.disabled
        if name not in names
    ]


def points_table(now: Running, then: Running) -> Block:
    """Extension point by extension point: the plugins of `then` in call order, and what is new against `now`."""
    rows = []
    for point in POINTS:
        before, after = now.get(point, []), then.get(point, [])
        if not before and not after:
            continue
        names = ", ".join(_name(n, w, point) for n, w in after) or "–"
        rows.append(v.row(CONFIG_KEYS[point], names, _change(point, before, after)))
    columns = [
        v.column(t("Extension point", "扩展点")),
        v.column(t("Plugins, in call order", "插件，按调用顺序")),
        v.column(t("Against the lab now", "与 lab 现在相比")),
    ]
    return v.table(columns, rows)


def weights_table(now: Running, then: Running) -> Block:
    """Score plugins with their weights, before and after."""
    before, after = dict(now.get("score", [])), dict(then.get("score", []))
    rows = []
    for name in dict.fromkeys([*after, *before]):
        old, new = before.get(name), after.get(name)
        shown = v.strong(str(new)) if new is not None and new != old else new
        rows.append(v.row(name, old, shown, _weight_change(old, new)))
    columns = [
        v.column(t("Score plugin", "Score 插件")),
        v.column(t("lab now", "lab 现在"), num=True),
        v.column(t("this file", "本文件"), num=True),
        v.column(t("Change", "变化")),
    ]
    return v.table(columns, rows)


def _weight_change(old: int | None, new: int | None) -> Block:
    if new is None:
        return v.mark("fail", t("does not score", "不打分"))
    if old is None:
        return v.mark("now", t("new", "新增"))
    if new > old:
        return v.mark("now", t("heavier", "加重"))
    return v.mark("now", t("lighter", "减轻")) if new < old else v.mark("skip", t("same", "不变"))


def _name(name: str, weight: int, point: str) -> str:
    return f"{name} ×{weight}" if point in WEIGHTED else name


def _change(point: str, before: list[tuple[str, int]], after: list[tuple[str, int]]) -> Block:
    old, new = dict(before), dict(after)
    words = [f"+ {n}" for n in new if n not in old] + [f"− {n}" for n in old if n not in new]
    if point in WEIGHTED:
        words += [f"{n} ×{old[n]} → ×{new[n]}" for n in new if n in old and old[n] != new[n]]
    if [n for n in old if n in new] != [n for n in new if n in old]:
        words.append(t("another order", "顺序变了"))
    return v.mark("now", ", ".join(words)) if words else v.mark("skip", t("same", "不变"))
