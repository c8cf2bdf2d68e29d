"""Spread and affinity by domain: what each zone or host counts, and which ones a pod may use."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from labkit.engine.framework import Framework
from labkit.engine.informer import typed
from labkit.engine.trace import Trace
from labkit.errors import LabError
from labkit.i18n import t
from labkit.objects.pod import Pod
from labkit.widgets import pod_rules as edit
from labkit.widgets import view as v
from labkit.widgets.domain_tables import rejections, rule_card
from labkit.widgets.domains import Rule, rules
from labkit.widgets.pod_rules import Json
from labkit.widgets.scene import Scene, key_of, pod_options, without_node
from labkit.widgets.trace import verdict_block
from labkit.widgets.view import Block

if TYPE_CHECKING:
    from labkit.lab import Lab

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_MOST_SKEW, _MOST_DOMAINS = 5, 6
#: With more values than nodes divided by this, a label tells nodes apart and is no topology; hostname always is one.
_FEW = 2


class DomainsViewController:
    """One pod under other constraints and terms, domain by domain. Nothing in the lab changes."""

    def __init__(self, lab: Lab, pod: Any) -> None:
        self.scene = Scene(lab)
        self.keys = _topology_keys(self.scene.nodes)
        self._pick(self.scene.pod(pod))

    def _pick(self, pod: Json) -> None:
        self.written = pod
        self.pod = copy.deepcopy(pod)
        self.at = 0
        self._decide()

    def handle(self, id: str, value: Any) -> None:
        """`pod`, `constraint`, `when`, `key`, `skew`, `domains`, `selector`; `affinity`, `affinity.key`,
        `affinity.selector`; `reset`. LabError for two constraints that Kubernetes would refuse; nothing changes then.
        """
        if id == "pod":
            self._pick(self.scene.pod(str(value)))
        elif id == "reset":
            self._pick(self.written)
        elif id == "constraint":
            self.at = min(max(int(value), 0), max(len(edit.constraints(self.pod)) - 1, 0))
        elif id in ("when", "key", "skew", "domains", "selector"):
            every = copy.deepcopy(edit.constraints(self.pod))
            self._change_spread(every, id, value)
            _refuse_doubles(every)
            edit.set_constraints(self.pod, every)
            self.at = min(self.at, max(len(every) - 1, 0))
            self._decide()
        elif id.split(".")[0] == "affinity":
            self._change_term(id, str(value))
            self._decide()

    def _change_spread(self, every: list[Json], id: str, value: Any) -> None:
        if id == "when" and value == "none":
            del every[self.at : self.at + 1]
            return
        if not every:
            every.append(
                {
                    "maxSkew": 1,
                    "topologyKey": self._default_key(),
                    "whenUnsatisfiable": edit.DO_NOT_SCHEDULE,
                    "labelSelector": edit.selector_of(self._own_label()),
                }
            )
        one = every[self.at]
        if id == "when" and value in (edit.DO_NOT_SCHEDULE, edit.SCHEDULE_ANYWAY):
            one["whenUnsatisfiable"] = value
            if value == edit.SCHEDULE_ANYWAY:
                # Kubernetes refuses minDomains there.
                one.pop("minDomains", None)
        elif id == "key" and value in self._keys_with(one["topologyKey"]):
            one["topologyKey"] = value
        elif id == "skew":
            one["maxSkew"] = min(max(int(value), 1), _MOST_SKEW)
        elif id == "domains" and one["whenUnsatisfiable"] == edit.DO_NOT_SCHEDULE:
            one["minDomains"] = min(max(int(value), 1), _MOST_DOMAINS)
        elif id == "selector" and value in self._labels():
            one["labelSelector"] = edit.selector_of(str(value))

    def _change_term(self, id: str, value: str) -> None:
        if id == "affinity" and value == edit.SEVERAL:
            self.pod["spec"]["affinity"] = copy.deepcopy(self.written["spec"].get("affinity") or {})
            return
        there = edit.terms(self.pod)
        kind, term = there[0] if there else ("podAntiAffinity required", self._new_term())
        term = copy.deepcopy(term)
        if id == "affinity" and value == "none":
            edit.set_term(self.pod, kind, None)
            return
        if id == "affinity" and value in edit.KINDS:
            kind = value
        elif id == "affinity.key" and value in self._keys_with(term["topologyKey"]):
            term["topologyKey"] = value
        elif id == "affinity.selector" and value in self._labels():
            term["labelSelector"] = edit.selector_of(value)
        else:
            return
        edit.set_term(self.pod, kind, term)

    def _new_term(self) -> Json:
        return {
            "topologyKey": self._default_key(),
            "labelSelector": edit.selector_of(self._own_label()),
        }

    def _default_key(self) -> str:
        return ZONE if ZONE in self.keys else self.keys[0]

    def _keys_with(self, key: str) -> list[str]:
        return list(dict.fromkeys([*self.keys, key]))

    def _own_label(self) -> str:
        own = edit.labels_of([self.pod], without=self.keys)
        return next((text for text in own if text.startswith("app=")), own[0] if own else "app=web")

    def _labels(self) -> list[str]:
        return edit.labels_of([*self.scene.placed, *self.scene.waiting, self.pod], without=self.keys)

    def _decide(self) -> None:
        used: list[Framework] = []
        self.trace: Trace = self.scene.decide(self.pod, change=used.append, all_filters=True)
        pod = typed(without_node(self.pod), "Pod")
        assert isinstance(pod, Pod)
        self.rules: list[Rule] = rules(used[0], pod, self.trace)

    # --- what is shown ----------------------------------------------------------------------------------------

    def view(self) -> list[Block]:
        """The decision, one card a rule, and the controls beside them."""
        rejected = rejections(self.trace)
        items: list[Block] = [v.card(None, verdict_block(self.trace), *([rejected] if rejected else []))]
        items += [rule_card(rule, self.trace) for rule in self.rules]
        if not self.rules:
            items.append(
                v.card(
                    None,
                    v.text(
                        t(
                            "PodTopologySpread and InterPodAffinity have nothing to say about this pod: it has no "
                            "constraint and no term, and no pod that is there has one that means it.",
                            "PodTopologySpread 和 InterPodAffinity 对这个 Pod 没有意见：它没有约束，也没有亲和性条目，"
                            "已有的 Pod 也没有针对它的条目。",
                        )
                    ),
                )
            )
        soft = any(c["whenUnsatisfiable"] == edit.SCHEDULE_ANYWAY for c in edit.constraints(self.pod)) or any(
            "preferred" in kind for kind, _ in edit.terms(self.pod)
        )
        if soft and not self.trace.scores:
            items.append(
                v.text(
                    t(
                        "What is only preferred was not looked at: no node was scored.",
                        "仅属偏好的规则没有被考虑：没有节点被打分。",
                    ),
                    mute=True,
                )
            )
        changed = self.pod["spec"] != self.written["spec"]
        return [
            v.toolbar(
                t("Domains", "拓扑域"),
                sub=t(f"pod {key_of(self.pod)}", f"Pod {key_of(self.pod)}"),
                buttons=[v.button("reset", t("As written", "恢复原样"), disabled=not changed)],
            ),
            v.grid("minmax(0,1fr) 290px", v.grid("minmax(0,1fr)", *items), self._controls()),
        ]

    def _controls(self) -> Block:
        return v.card(
            None,
            v.controls(v.select("pod", "Pod", key_of(self.pod), pod_options(self.scene, self.pod))),
            v.heading("topologySpreadConstraints"),
            v.controls(*self._spread_controls()),
            v.heading(t("Inter-pod affinity", "Pod 间亲和性")),
            v.controls(*self._term_controls()),
        )

    def _spread_controls(self) -> list[Block]:
        every = edit.constraints(self.pod)
        found: list[Block] = []
        if len(every) > 1:
            numbers = [(str(i), f"{i + 1}: {c['topologyKey']}") for i, c in enumerate(every)]
            found.append(v.select("constraint", t("Constraint", "约束"), str(self.at), numbers))
        one: Mapping[str, Any] = every[self.at] if every else {}
        when = str(one.get("whenUnsatisfiable", "none"))
        choices = [(x, x) for x in (edit.DO_NOT_SCHEDULE, edit.SCHEDULE_ANYWAY)]
        found.append(
            v.select("when", "whenUnsatisfiable", when, [("none", t("no constraint", "没有约束")), *choices])
        )
        if not one:
            return found
        key, skew = str(one["topologyKey"]), int(one["maxSkew"])
        found.append(v.select("key", "topologyKey", key, [(k, k) for k in self._keys_with(key)]))
        found.append(
            v.slider("skew", "maxSkew", skew, min=1, max=max(_MOST_SKEW, skew), step=1, figure=str(skew))
        )
        least = int(one.get("minDomains") or 1)
        if when == edit.DO_NOT_SCHEDULE:
            top = max(_MOST_DOMAINS, least)
            found.append(v.slider("domains", "minDomains", least, min=1, max=top, step=1, figure=str(least)))
        found.append(
            self._selector("selector", t("labelSelector of the constraint", "约束的 labelSelector"), one)
        )
        return found

    def _term_controls(self) -> list[Block]:
        there = edit.terms(self.pod)
        kind = edit.SEVERAL if len(there) > 1 else there[0][0] if there else "none"
        options = [("none", t("none", "无")), *((k, k) for k in edit.KINDS)]
        if len(edit.terms(self.written)) > 1:
            options.append((edit.SEVERAL, t("as written, several terms", "原样（多个条目）")))
        found = [v.select("affinity", t("Kind of term", "条目类型"), kind, options)]
        if len(there) == 1:
            term = there[0][1]
            key = str(term["topologyKey"])
            title = t("topologyKey of the term", "条目的 topologyKey")
            found.append(v.select("affinity.key", title, key, [(k, k) for k in self._keys_with(key)]))
            found.append(
                self._selector(
                    "affinity.selector", t("labelSelector of the term", "条目的 labelSelector"), term
                )
            )
        return found

    def _selector(self, id: str, title: str, holder: Mapping[str, Any]) -> Block:
        now = edit.selector_text(holder.get("labelSelector"))
        texts = dict.fromkeys([now, *self._labels()])
        return v.select(id, title, now, [(x, x or t("(every pod)", "（所有 Pod）")) for x in texts])

    def summary(self) -> str:
        """Where the pod goes, and how many domains are open to it."""
        where = self.trace.node or t("nowhere", "无处可放")
        return f"{key_of(self.pod)} → {where}"


def _topology_keys(nodes: list[Json]) -> list[str]:
    """Labels that group nodes: zone and hostname first, then every other one with few values."""
    values: dict[str, set[str]] = {}
    for node in nodes:
        for key, value in (node["metadata"].get("labels") or {}).items():
            values.setdefault(key, set()).add(value)
    first = [k for k in (ZONE, HOSTNAME) if k in values]
    rest = sorted(k for k, vs in values.items() if k not in first and len(vs) <= max(len(nodes) / _FEW, 2))
    return [*first, *rest] or [HOSTNAME]


def _refuse_doubles(every: list[Json]) -> None:
    seen = set()
    for one in every:
        pair = (one["topologyKey"], one["whenUnsatisfiable"])
        if pair in seen:
            raise LabError(
                t(
                    f"Kubernetes refuses two constraints with the same {{topologyKey, whenUnsatisfiable}}: {pair[0]}, "
                    f"{pair[1]}",
                    f"Kubernetes 不接受 {{topologyKey, whenUnsatisfiable}} 相同的两个约束：{pair[0]}，{pair[1]}",
                )
            )
        seen.add(pair)
