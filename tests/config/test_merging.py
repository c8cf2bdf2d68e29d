"""Plugin sets: merging with the defaults and expanding to extension points."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labkit.config import (
    DEFAULT_MULTI_POINT,
    IN_TREE_PLUGINS,
    FeatureGates,
    PluginRef,
    PluginSet,
    build_profiles,
    expand_profile,
    extension_points_of,
    load_config,
)
from labkit.config.defaults import merge_plugin_set

from tests.config.support import profile, refusal

DEFAULT_SCORE = [
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodeResourcesFit", 1),
    ("VolumeBinding", 1),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 2),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
]


def points(plugins: dict[str, Any], gates: FeatureGates | None = None) -> dict[str, list[tuple[str, int]]]:
    gates = gates or FeatureGates()
    return build_profiles(load_config(profile(plugins), gates=gates), gates)["default-scheduler"]


def names(plugins: list[tuple[str, int]]) -> list[str]:
    return [name for name, _ in plugins]


def on(*plugins: tuple[str, int] | str) -> list[dict[str, Any]]:
    return [{"name": p} if isinstance(p, str) else {"name": p[0], "weight": p[1]} for p in plugins]


def without(*dropped: str) -> list[tuple[str, int]]:
    return [plugin for plugin in DEFAULT_SCORE if plugin[0] not in dropped]


def test_default_profile() -> None:
    """Without a word about plugins: the known lists, and nothing at permit and postBind."""
    built = points({})
    assert built["score"] == DEFAULT_SCORE
    assert names(built["post_filter"]) == ["DynamicResources", "DefaultPreemption"]
    assert names(built["reserve"]) == names(built["pre_bind"]) == ["VolumeBinding", "DynamicResources"]
    assert names(built["pre_enqueue"]) == ["SchedulingGates", "DynamicResources", "DefaultPreemption"]
    assert built["permit"] == built["post_bind"] == built["placement_generate"] == []
    assert built["placement_score"] == [("NodeResourcesFit", 1)]


@pytest.mark.parametrize(
    ("plugins", "score"),
    [
        ({"score": {"enabled": on(("ImageLocality", 7))}}, [("ImageLocality", 7), *without("ImageLocality")]),
        (
            {"score": {"disabled": on("ImageLocality"), "enabled": on(("ImageLocality", 7))}},
            [*without("ImageLocality"), ("ImageLocality", 7)],
        ),
        ({"score": {"disabled": on("*"), "enabled": on(("NodeResourcesFit", 5))}}, [("NodeResourcesFit", 5)]),
        (
            {"multiPoint": {"enabled": on(("NodeResourcesFit", 9))}},
            [("NodeResourcesFit", 9) if p[0] == "NodeResourcesFit" else p for p in DEFAULT_SCORE],
        ),
        (
            {"multiPoint": {"disabled": on("NodeResourcesFit"), "enabled": on(("NodeResourcesFit", 9))}},
            [*without("NodeResourcesFit"), ("NodeResourcesFit", 9)],
        ),
        (
            {
                "multiPoint": {"enabled": on(("NodeResourcesFit", 9))},
                "score": {"enabled": on(("NodeResourcesFit", 4))},
            },
            [("NodeResourcesFit", 4), *without("NodeResourcesFit")],
        ),
        (
            {"score": {"enabled": on("TaintToleration")}},
            [("TaintToleration", 1), *without("TaintToleration")],
        ),
        (
            {"score": {"enabled": on(("TaintToleration", 0))}},
            [("TaintToleration", 1), *without("TaintToleration")],
        ),
        ({"score": {"disabled": on("NodeResourcesFit")}}, without("NodeResourcesFit")),
        ({"multiPoint": {"disabled": on("NodeResourcesFit")}}, without("NodeResourcesFit")),
        ({"score": {"disabled": on("SelectorSpread", "Nobody")}}, DEFAULT_SCORE),
        ({"multiPoint": {"disabled": on("*"), "enabled": on("PrioritySort", "DefaultBinder")}}, []),
    ],
)
def test_score_list(plugins: dict[str, Any], score: list[tuple[str, int]]) -> None:
    """What a user writes under `plugins` -> the score plugins in order, with weights."""
    assert points(plugins)["score"] == score


def test_disabled_at_score_still_filters() -> None:
    """Disabling at one point leaves the others alone; disabling in multiPoint clears all."""
    assert "NodeResourcesFit" in names(points({"score": {"disabled": on("NodeResourcesFit")}})["filter"])
    gone = points({"multiPoint": {"disabled": on("NodeResourcesFit")}})
    assert all("NodeResourcesFit" not in names(plugins) for plugins in gone.values())


def test_override_keeps_the_weight_of_multi_point_elsewhere() -> None:
    """score names Fit with 4, multiPoint with 9: score has 4, placementScore 9."""
    built = points(
        {
            "multiPoint": {"enabled": on(("NodeResourcesFit", 9))},
            "score": {"enabled": on(("NodeResourcesFit", 4))},
        }
    )
    assert built["placement_score"] == [("NodeResourcesFit", 9)]


def test_own_list_goes_first_in_its_own_order() -> None:
    """filter.enabled [VolumeZone, NodeName] -> these two, then the rest of multiPoint."""
    found = names(points({"filter": {"enabled": on("VolumeZone", "NodeName")}})["filter"])
    assert found[:4] == ["VolumeZone", "NodeName", "NodeUnschedulable", "TaintToleration"]


def test_post_filter_without_preemption() -> None:
    """DefaultPreemption disabled at postFilter stays at preEnqueue."""
    built = points({"postFilter": {"disabled": on("DefaultPreemption")}})
    assert names(built["post_filter"]) == ["DynamicResources"]
    assert "DefaultPreemption" in names(built["pre_enqueue"])


@pytest.mark.parametrize(
    ("plugins", "text"),
    [
        (
            {"multiPoint": {"disabled": on("*")}},
            'only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 0',
        ),
        (
            {"multiPoint": {"disabled": on("*"), "enabled": on("PrioritySort")}},
            'at least one bind plugin is needed for profile with scheduler name "default-scheduler"',
        ),
        ({"filter": {"enabled": on("NodeSelector")}}, 'FilterPlugin "NodeSelector" does not exist'),
        (
            {"permit": {"enabled": on("NodeResourcesFit")}},
            'plugin "NodeResourcesFit" does not extend PermitPlugin plugin',
        ),
        (
            {"filter": {"enabled": on("NodeName", "NodeName")}},
            'plugin "NodeName" already registered as "FilterPlugin"',
        ),
        ({"multiPoint": {"enabled": on("Coscheduling")}}, 'PreFilterPlugin "Coscheduling" does not exist'),
        (
            {"multiPoint": {"enabled": on("Coscheduling")}, "preFilter": {"disabled": on("*")}},
            'FilterPlugin "Coscheduling" does not exist',
        ),
        (
            {"multiPoint": {"enabled": on("NodeName", "NodeName")}},
            'plugin "NodeName" already registered as "FilterPlugin"',
        ),
        (
            {"score": {"enabled": on(("ImageLocality", -3))}},
            "score plugins: total score of Score plugins could overflow",
        ),
        (
            {"placementScore": {"enabled": on(("PodGroupPodsCount", -3))}},
            "placement score plugins: total score of Score plugins could overflow",
        ),
    ],
)
def test_profile_that_cannot_be_built(plugins: dict[str, Any], text: str) -> None:
    """The text, behind the two prefixes."""
    prefix = "initializing profiles: creating profile for scheduler name default-scheduler: "
    assert refusal(profile(plugins)) == ("init", prefix + text)


def test_gates_change_the_default_list() -> None:
    """Gang scheduling and topology-aware scheduling append their plugins; NodeDeclaredFeatures can be dropped."""
    gang = FeatureGates.parse("GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true")
    built = points({}, gang)
    assert names(built["permit"]) == ["GangScheduling"]
    assert names(built["placement_generate"]) == ["TopologyPlacementGenerator"]
    assert built["placement_score"] == [("NodeResourcesFit", 1), ("PodGroupPodsCount", 1)]
    bare = FeatureGates.parse("NodeDeclaredFeatures=false,InPlacePodLevelResourcesVerticalScaling=false")
    assert "NodeDeclaredFeatures" not in names(points({}, bare)["filter"])


class Blue:
    """Not in tree: filters and scores."""

    def filter(self, state: Any, pod: Any, node: Any) -> None: ...

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 0


class Sorter:
    """Not in tree: sorts the queue."""

    def less(self, a: Any, b: Any) -> bool:
        return False


class Binder:
    """Not in tree: binds."""

    def bind(self, state: Any, pod: Any, node_name: str) -> None: ...


def test_classes_of_ones_own() -> None:
    """A class serves the points whose methods it has, through multiPoint and by name."""
    assert extension_points_of(Blue) == {"filter", "score"}
    assert extension_points_of(Sorter) == {"queue_sort"}
    config = load_config(
        profile({"multiPoint": {"disabled": on("*"), "enabled": on(("Blue", 5), "Sorter", "Binder")}})
    )
    registry = {"Blue": Blue, "Sorter": Sorter, "Binder": Binder}
    built = expand_profile(config.profiles[0], registry, FeatureGates())
    assert {point: plugins for point, plugins in built.items() if plugins} == {
        "filter": [("Blue", 0)],
        "score": [("Blue", 5)],
        "bind": [("Binder", 0)],
        "queue_sort": [("Sorter", 0)],
    }


ANY_NAME = st.sampled_from(["A", "B", "C", "D", "*"])
PLAIN = st.sampled_from(["A", "B", "C", "D"])
SETS = st.builds(
    PluginSet,
    st.lists(st.builds(PluginRef, PLAIN, st.integers(0, 3)), max_size=4),
    st.lists(ANY_NAME, max_size=3),
)
DEFAULTS = st.builds(
    lambda listed: PluginSet([PluginRef(name, 1) for name in listed]),
    st.lists(PLAIN, unique=True, max_size=4),
)


@given(DEFAULTS, SETS)
def test_merging_laws(default: PluginSet, user: PluginSet) -> None:
    """Whatever is merged: what the user enables is enabled, with the user's weight; what only is disabled is gone;
    defaults that nobody touches keep their order and weight."""
    merged = merge_plugin_set(default, user)
    enabled_by_user = {plugin.name for plugin in user.enabled}
    mine = [plugin for plugin in merged.enabled if plugin.name in enabled_by_user]
    assert sorted((p.name, p.weight) for p in mine) == sorted((p.name, p.weight) for p in user.enabled)
    untouched = (
        []
        if "*" in user.disabled
        else [
            plugin
            for plugin in default.enabled
            if plugin.name not in enabled_by_user and plugin.name not in user.disabled
        ]
    )
    assert [plugin for plugin in merged.enabled if plugin.name not in enabled_by_user] == untouched
    assert merged.disabled == user.disabled
    assert default.disabled == []


@given(DEFAULTS)
def test_merging_nothing_changes_nothing(default: PluginSet) -> None:
    """An empty user set gives the defaults."""
    assert merge_plugin_set(default, PluginSet()) == default


@given(st.lists(st.sampled_from(sorted(IN_TREE_PLUGINS)), unique=True, max_size=6))
def test_disabling_removes_exactly_these(dropped: list[str]) -> None:
    """Disabling plugins in multiPoint takes them, and nothing else, out of every point."""
    dropped = [name for name in dropped if name not in ("PrioritySort", "DefaultBinder")]
    built, whole = points({"multiPoint": {"disabled": on(*dropped)}}), points({})
    for point, plugins in whole.items():
        assert built[point] == [plugin for plugin in plugins if plugin[0] not in dropped]


def test_table_and_default_list_agree() -> None:
    """Every default plugin is in the table of in-tree plugins."""
    assert {name for name, _ in DEFAULT_MULTI_POINT} <= set(IN_TREE_PLUGINS)
    assert len(IN_TREE_PLUGINS) == 23
