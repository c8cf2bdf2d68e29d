"""The same waiting pods, decided under two sets of plugins from one state of the cluster."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from labkit.config import FeatureGates
from labkit.engine.scheduler import Scheduler
from labkit.engine.trace import Trace
from labkit.engine.trace_text import table
from labkit.framework.clock import VirtualClock
from labkit.framework.plugin import plugin_name
from labkit.i18n import t
from labkit.objects.meta import RawObject
from labkit.plugin_switches import check_switch
from labkit.plugins.registry import IN_TREE

if TYPE_CHECKING:
    from labkit.lab import Lab

#: Plugin -> extension points at which it is taken out; none means everywhere.
Switches = Mapping[str, Iterable[str]]

#: Stands for the node of a pod that none takes.
NOWHERE = "–"


@dataclass
class Difference:
    """One pod's two decisions."""

    pod: str
    before: Trace | None
    after: Trace | None

    @property
    def nodes(self) -> tuple[str, str]:
        """Where it goes, before and after; "–" when nowhere."""
        return _node(self.before), _node(self.after)

    @property
    def changed(self) -> bool:
        """The two nodes differ."""
        before, after = self.nodes
        return before != after

    @property
    def outcome(self) -> str:
        """What the change does to the pod, in words: the node changes, is found, is lost, or stays."""
        before, after = self.nodes
        if before == after:
            return t("same", "不变")
        if before == NOWHERE:
            return t("finds a node", "有了节点")
        return t("finds no node", "没有了节点") if after == NOWHERE else t("moves", "换了节点")


@dataclass
class WhatIf:
    """All pods' decisions side by side; shows as a table."""

    differences: list[Difference] = field(default_factory=list)

    @property
    def changed(self) -> list[Difference]:
        """Only the pods that end differently: on another node, with one instead of none, or the reverse."""
        return [d for d in self.differences if d.changed]

    def rows(self) -> list[list[str]]:
        """A header and one row a pod: name, node before, node after, whether it changed."""
        header = [t("Pod", "Pod"), t("now", "现在"), t("what if", "假如"), ""]
        return [header] + [[d.pod, *d.nodes, d.outcome] for d in self.differences]

    def summary(self) -> str:
        """How many pods end differently, in words."""
        count, total = len(self.changed), len(self.differences)
        return t(f"{count} of {total} pods end differently", f"{total} 个 Pod 中有 {count} 个的去向变了")

    def __str__(self) -> str:
        head = self.summary() + t(".", "。")
        return "\n".join([head, "", *table(self.rows())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        header, *rows = self.rows()
        head = "".join(f'<th scope="col">{escape(c)}</th>' for c in header)
        body = "".join(
            f'<tr><th scope="row">{escape(r[0])}</th>'
            + "".join(f"<td>{escape(c)}</td>" for c in r[1:])
            + "</tr>"
            for r in rows
        )
        caption = escape(str(self).splitlines()[0])
        return (
            f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


class ScratchClient:
    """A cluster client over copies of the objects: binds and patches stay inside."""

    def __init__(self, objects: dict[str, list[RawObject]]) -> None:
        self._objects = {
            kind: {(o["metadata"].get("namespace", ""), o["metadata"]["name"]): o for o in items}
            for kind, items in objects.items()
        }
        self.scheduler: Scheduler | None = None
        self._version = 0

    def list(self, kind: str, *_: Any, **__: Any) -> tuple[list[RawObject], str]:
        """Objects of a kind."""
        return list(self._objects.get(kind, {}).values()), "0"

    def _change(self, kind: str, namespace: str, name: str, part: str, values: RawObject) -> None:
        key = (namespace, name)
        old = self._objects[kind][key]
        self._version += 1
        new = {
            **old,
            "metadata": {**old["metadata"], "resourceVersion": f"scratch-{self._version}"},
            part: {**(old.get(part) or {}), **values},
        }
        self._objects[kind][key] = new
        if self.scheduler is not None:
            self.scheduler.notify(old, new)

    def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Put the pod on the node."""
        self._change("Pod", namespace, name, "spec", {"nodeName": node})

    def patch_status(self, kind: str, name: str, namespace: str, patch: RawObject) -> None:
        """Only the nomination matters here."""
        nominated = patch.get("status", {}).get("nominatedNodeName")
        if "nominatedNodeName" in patch.get("status", {}) and (namespace, name) in self._objects.get(
            kind, {}
        ):
            self._change(kind, namespace, name, "status", {"nominatedNodeName": nominated})

    def patch(self, *_: Any, **__: Any) -> None:
        """Nothing waits for it."""

    def delete(self, kind: str, name: str, namespace: str = "", **_: Any) -> None:
        """Gone at once."""
        old = self._objects.get(kind, {}).pop((namespace, name), None)
        if old is not None and self.scheduler is not None:
            self.scheduler.notify(old, None)

    def create_event(self, event: RawObject) -> None:
        """Nobody reads events of a what-if."""


def compare(lab: Lab, *, config: Any, plugins: list[Any], disable: Switches) -> WhatIf:
    """See `Lab.what_if`."""
    for name, points in disable.items():
        check_switch(lab.scheduler.frameworks.values(), name, points)
    before = _decide(lab, lab.config, current=True, plugins=[], disable={})
    after = _decide(lab, config or lab.config, current=config is None, plugins=plugins, disable=disable)
    order = list(dict.fromkeys([*before, *after]))
    return WhatIf([Difference(pod, before.get(pod), after.get(pod)) for pod in order])


def _decide(
    lab: Lab, config: Any, *, current: bool, plugins: list[Any], disable: Switches
) -> dict[str, Trace]:
    from labkit.engine.informer import ALL_KINDS

    objects: dict[str, list[RawObject]] = {}
    for kind in ALL_KINDS:
        try:
            objects[kind] = lab.client.list(kind)[0]
        except Exception:
            objects[kind] = []
    client = ScratchClient(objects)
    names = {plugin_name(p) for p in plugins}
    scheduler = Scheduler(
        client,
        config,
        clock=VirtualClock(lab.clock.now()),
        plugins=own_plugins(lab)
        if current
        else [*(p for p in own_plugins(lab) if plugin_name(p) not in names), *plugins],
        gates=gates_of(lab),
        trace="on",
        keep_traces=100_000,
    )
    client.scheduler = scheduler
    if current:
        for name, framework in lab.scheduler.frameworks.items():
            if name in scheduler.frameworks:
                scheduler.frameworks[name].borrow(framework)
    for framework in scheduler.frameworks.values():
        for name, points in disable.items():
            framework.remove(name, points or None)
        for plugin in plugins if current else ():
            framework.replace(plugin() if isinstance(plugin, type) else plugin)
    scheduler.plugins_changed()
    scheduler.load()
    found: dict[str, Trace] = {}
    for _ in range(100_000):
        trace = scheduler.schedule_one()
        if trace is None:
            break
        found[trace.pod] = trace
    return found


def gates_of(lab: Lab) -> FeatureGates:
    """The feature gates that `lab` runs with."""
    return FeatureGates(lab.scheduler.services.gates)


def own_plugins(lab: Lab) -> list[Any]:
    """The plugins that are not in-tree, as a second scheduler takes them: a class if the lab was given one that its
    configuration names, otherwise a copy of the object that runs, which keeps its own handle."""
    named = {
        ref.name
        for profile in lab.scheduler.config.profiles
        for plugin_set in profile.plugins.values()
        for ref in plugin_set.enabled
    }
    classes = {plugin_name(p) for p in lab.given_plugins if isinstance(p, type)}
    found: dict[str, Any] = {}
    for framework in lab.scheduler.frameworks.values():
        for plugin in framework.all_plugins():
            name = plugin_name(plugin)
            if type(plugin) is not IN_TREE.get(name):
                found.setdefault(name, type(plugin) if name in named & classes else copy.copy(plugin))
    return list(found.values())


def _node(trace: Trace | None) -> str:
    return trace.node if trace is not None and trace.node is not None else NOWHERE
