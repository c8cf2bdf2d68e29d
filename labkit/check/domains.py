"""Checks of plugins that keep pods apart or spread them, on generated clusters with zones.

Each rule that such a plugin must know has a family of clusters that turns on it alone, so that a failed case names
what is missing. In every cluster at least one node passes and at least one does not.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from labkit.check.plugins import VISIBLE, _is_plugin, _no_error, run
from labkit.check.report import Case, Exercise, Words
from labkit.i18n import t

Json = dict[str, Any]
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_ZONES = {"a1": "a", "a2": "a", "b1": "b", "b2": "b", "c1": "c"}


class _World:
    """A cluster in the making: five nodes in three zones, one pod `web` to place."""

    def __init__(self, seed: int, family: str) -> None:
        self.rng = random.Random(f"labkit-check/{family}/{seed}")
        self.nodes: dict[str, Json] = {n: {"cpu": 8, "labels": {ZONE: z}} for n, z in _ZONES.items()}
        self.objects: list[Json] = []
        self.web: Json = {"labels": {"app": "web"}, "spec": {}}
        self.facts: dict[str, list[str]] = {}

    def bare(self) -> None:
        """One more node, in no zone."""
        self.nodes["bare"] = {"cpu": 8}

    def put(
        self, node: str, app: str, *, ns: str = "default", leaving: bool = False, apart: Json | None = None
    ) -> None:
        """A pod that is there."""
        name = f"{app}-{len(self.objects) + 1}"
        meta: Json = {"name": name, "namespace": ns, "labels": {"app": app}}
        if leaving:
            meta |= {"deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["example.com/wait"]}
        spec: Json = {"nodeName": node, "containers": [{"name": "c", "image": "app"}]}
        if apart is not None:
            spec["affinity"] = _anti(apart)
        self.objects.append({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        words = f"{app}" + (f" ({ns})" if ns != "default" else "")
        words += t(" leaving", " 正在终止") if leaving else ""
        words += f" ≠ {_term_text(apart)}" if apart is not None else ""
        self.facts.setdefault(node, []).append(words)

    def scenario(self) -> Json:
        """In short form."""
        return {"nodes": self.nodes, "objects": self.objects, "pods": {"web": self.web}}


def _term(app: str, key: str, **more: Any) -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def _anti(*terms: Json) -> Json:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def _term_text(term: Json) -> str:
    app = term["labelSelector"]["matchLabels"]["app"]
    where = f" ({', '.join(term['namespaces'])})" if "namespaces" in term else ""
    return f"{app}{where} / {term['topologyKey'].rpartition('/')[2]}"


# --- apart ------------------------------------------------------------------------------------------------


def _own_by_host(w: _World) -> None:
    w.web["spec"]["affinity"] = _anti(_term("web", HOST))
    for node in w.rng.sample(list(_ZONES), w.rng.randint(1, 3)):
        w.put(node, "web")
    w.put(w.rng.choice(list(_ZONES)), "db")


def _own_by_zone(w: _World) -> None:
    w.web["spec"]["affinity"] = _anti(_term("web", ZONE))
    for zone in w.rng.sample("ab", w.rng.randint(1, 2)):
        w.put(f"{zone}{w.rng.randint(1, 2)}", "web")
    w.put("c1", "db")


def _objections(w: _World) -> None:
    key = w.rng.choice((ZONE, HOST))
    w.put(w.rng.choice(("a1", "a2")), "db", apart=_term("web", key))
    w.put("b1", "db", apart=_term("cache", ZONE))
    w.put("c1", "web")


def _two_terms(w: _World) -> None:
    w.web["spec"]["affinity"] = _anti(_term("web", HOST), _term("db", ZONE))
    first, second = w.rng.sample("ab", 2)
    w.put(f"{first}{w.rng.randint(1, 2)}", "web")
    w.put(f"{second}{w.rng.randint(1, 2)}", "db")


def _namespaces(w: _World) -> None:
    own, foreign = w.rng.sample("ab", 2)
    if w.rng.random() < 0.5:
        w.web["spec"]["affinity"] = _anti(_term("web", ZONE))
        w.put(f"{own}1", "web")
        w.put(f"{foreign}2", "web", ns="other")
    else:
        w.web["spec"]["affinity"] = _anti(_term("web", ZONE, namespaces=["other"]))
        w.put(f"{own}1", "web", ns="other")
        w.put(f"{foreign}2", "web")
    w.put("c1", "db", ns="other", apart=_term("web", ZONE))


def _no_label(w: _World) -> None:
    w.bare()
    w.web["spec"]["affinity"] = _anti(_term("web", ZONE))
    w.put("bare", "web")
    w.put(w.rng.choice(list(_ZONES)), "web")


_Family = tuple[Words, Callable[[_World], None], Words]
_APART: tuple[_Family, ...] = (
    (
        ("own term, by host", "自己的条目，按主机"),
        _own_by_host,
        ("compare the node's value of the term's topologyKey", "比较节点上该条目 topologyKey 的值"),
    ),
    (
        ("own term, by zone", "自己的条目，按 zone"),
        _own_by_zone,
        (
            "a pod on another node of the same zone counts too: look at all nodes in pre_filter",
            "同一 zone 其他节点上的 Pod 也算：请在 pre_filter 里看所有节点",
        ),
    ),
    (
        ("terms of pods that are there", "已有 Pod 的条目"),
        _objections,
        (
            "the pods that are there have terms too; there they are the owner and `pod` is the other one",
            "已有的 Pod 也有条目；这时它们是 owner，`pod` 是 other",
        ),
    ),
    (
        ("two terms with different keys", "两个 key 不同的条目"),
        _two_terms,
        ("each term has its own topologyKey", "每个条目有自己的 topologyKey"),
    ),
    (
        ("namespaces", "命名空间"),
        _namespaces,
        (
            "a term without namespaces means its owner's namespace",
            "没有 namespaces 的条目指 owner 的命名空间",
        ),
    ),
    (
        ("nodes without the label", "没有标签的节点"),
        _no_label,
        ("a node without the label is in no domain", "没有标签的节点不属于任何域"),
    ),
)


# --- spread -----------------------------------------------------------------------------------------------


def _constrain(w: _World, skew: int, app: str = "web") -> None:
    w.web["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": skew,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": app}},
        }
    ]


def _fill(w: _World, counts: Mapping[str, int], app: str = "web", **how: Any) -> None:
    for zone, n in counts.items():
        for i in range(n):
            w.put(f"{zone}{i % 2 + 1}" if zone != "c" else "c1", app, **how)


def _lopsided(w: _World, low: int, skew: int) -> str:
    """One zone is too full, two are equal: the average says the same as the minimum. One of the two."""
    full, other, least = w.rng.sample("abc", 3)
    _fill(w, {full: low + skew + 2, other: low, least: low})
    return least


def _minimum(w: _World) -> None:
    skew = w.rng.randint(1, 2)
    _constrain(w, skew)
    low = w.rng.randint(1, 2)
    full, middle, least = w.rng.sample("abc", 3)
    # The fullest zone pulls the average above the middle one.
    _fill(w, {full: low + skew + 2, middle: low + skew, least: low})


def _empty_zone(w: _World) -> None:
    _constrain(w, 1)
    _fill(w, dict.fromkeys(w.rng.sample("abc", 2), w.rng.randint(1, 3)))
    w.put("c1", "db")


def _foreign(w: _World) -> None:
    skew = w.rng.randint(1, 2)
    _constrain(w, skew)
    _fill(w, {_lopsided(w, 1, skew): skew + 4}, ns="other")


def _leaving(w: _World) -> None:
    skew = w.rng.randint(1, 2)
    _constrain(w, skew)
    _fill(w, {_lopsided(w, 1, skew): skew + 4}, leaving=True)


def _unlabelled(w: _World) -> None:
    w.bare()
    _constrain(w, 1)
    _fill(w, dict.fromkeys("abc", w.rng.randint(1, 2)))


def _not_itself(w: _World) -> None:
    skew = w.rng.randint(1, 2)
    _constrain(w, skew, "db")
    full, middle, least = w.rng.sample("abc", 3)
    _fill(w, {full: skew + 4, middle: skew + 1, least: 1}, "db")


_SPREAD: tuple[_Family, ...] = (
    (
        ("the smallest count", "最小值"),
        _minimum,
        ("skew is measured against the smallest count of any zone", "skew 是相对各 zone 中的最小值计算的"),
    ),
    (
        ("a zone without such pods", "没有这种 Pod 的 zone"),
        _empty_zone,
        (
            "a zone counts as soon as it has a node, with 0 pods if need be",
            "zone 里只要有节点就算数，哪怕 Pod 数是 0",
        ),
    ),
    (
        ("namespaces", "命名空间"),
        _foreign,
        ("only pods of the new pod's namespace count", "只有与新 Pod 同一命名空间的 Pod 才算"),
    ),
    (
        ("pods that are leaving", "正在终止的 Pod"),
        _leaving,
        (
            "`metadata.deletion_timestamp` is set: that pod no longer counts",
            "`metadata.deletion_timestamp` 有值：这个 Pod 不再计数",
        ),
    ),
    (
        ("nodes without the label", "没有标签的节点"),
        _unlabelled,
        (
            "a node without the label is in no zone: rejected, and no zone of its own",
            "没有标签的节点不在任何 zone 里：拒绝，也不自成一个 zone",
        ),
    ),
    (
        ("a pod that its selector does not mean", "选择器不包括自己的 Pod"),
        _not_itself,
        ("the new pod adds 1 only if the selector matches it", "只有选择器匹配新 Pod 时才加 1"),
    ),
)


# --- checks -----------------------------------------------------------------------------------------------


def keeps_apart(plugin: Any, *, points: float, seeds: Iterable[int] = VISIBLE) -> Exercise:
    """The learner's Filter plugin must decide like InterPodAffinity on required anti-affinity, both ways."""
    return _like(plugin, "InterPodAffinity", _APART, points, list(seeds))


def spreads(plugin: Any, *, points: float, seeds: Iterable[int] = VISIBLE) -> Exercise:
    """The learner's Filter plugin must decide like PodTopologySpread on one hard constraint over zones."""
    return _like(plugin, "PodTopologySpread", _SPREAD, points, list(seeds))


def _like(plugin: Any, like: str, families: Iterable[_Family], points: float, seeds: list[int]) -> Exercise:
    exercise = Exercise(points)
    for name, build, hint in families:
        with exercise.case(*name, hint=hint) as case:
            _is_plugin(case, plugin, "filter")
            for seed in seeds:
                world = _World(seed, name[0])
                build(world)
                _compare(case, plugin, like, world)
    return exercise


def _compare(case: Case, plugin: Any, like: str, world: _World) -> None:
    made = world.scenario()
    expected = run([like], made)["web"]
    got = run([plugin], made)["web"]
    _no_error(case, got)
    wanted = {n: expected.filter[n].is_success for n in world.nodes}
    have = {n: n in got.filter and got.filter[n].is_success for n in world.nodes}
    wrong = [n for n in world.nodes if wanted[n] != have[n]]
    if not wrong:
        return
    rows = [
        [
            n,
            node.get("labels", {}).get(ZONE, "–"),
            _counted(world.facts.get(n, [])),
            _sign(wanted[n]),
            _sign(have[n]),
        ]
        for n, node in world.nodes.items()
    ]
    head = [
        t("node", "节点"),
        "zone",
        t("pods there (≠: its anti-affinity)", "已有的 Pod（≠：它的反亲和）"),
        t("expected", "应为"),
        t("yours", "你的"),
    ]
    case.table(head, rows)
    rule = _rule_text(world.web)
    first, more = wrong[0], len(wrong)
    case.fail(
        f"node {first} must be {'let through' if wanted[first] else 'rejected'} ({more} of {len(rows)} nodes differ). "
        f"The pod: app=web, {rule}",
        f"节点 {first} 应当{'通过' if wanted[first] else '被拒绝'}（{len(rows)} 个节点中有 {more} 个不同）。"
        f"Pod：app=web，{rule}",
    )


def _rule_text(web: Json) -> str:
    spec = web["spec"]
    for c in spec.get("topologySpreadConstraints", []):
        app = c["labelSelector"]["matchLabels"]["app"]
        return t(f"maxSkew {c['maxSkew']}, counts app={app}", f"maxSkew {c['maxSkew']}，计数对象 app={app}")
    terms = spec.get("affinity", _anti())["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return (
        "≠ " + "; ".join(_term_text(x) for x in terms) if terms else t("no term of its own", "自己没有条目")
    )


def _sign(passed: bool) -> str:
    return "✓" if passed else "✕"


def _counted(words: Iterable[str]) -> str:
    found = Counter(words)
    return ", ".join(f"{w} ×{n}" if n > 1 else w for w, n in found.items()) or "–"
