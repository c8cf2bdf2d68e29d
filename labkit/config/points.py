"""Extension points and the in-tree plugins that serve them, as data (spec 03 §3)."""

from __future__ import annotations

from collections.abc import Mapping

from labkit.framework.plugin import EXTENSION_POINTS

#: Extension point -> its key under `plugins` in a configuration, in the order of the Go type.
CONFIG_KEYS: dict[str, str] = {
    "pre_enqueue": "preEnqueue",
    "queue_sort": "queueSort",
    "pre_filter": "preFilter",
    "filter": "filter",
    "post_filter": "postFilter",
    "pre_score": "preScore",
    "score": "score",
    "reserve": "reserve",
    "permit": "permit",
    "pre_bind": "preBind",
    "bind": "bind",
    "post_bind": "postBind",
    "multi_point": "multiPoint",
    "placement_generate": "placementGenerate",
    "placement_score": "placementScore",
}
#: The points in the order in which a profile is built, which decides the error that is seen first (§3.4).
BUILD_ORDER: tuple[str, ...] = (
    "pre_filter",
    "filter",
    "post_filter",
    "reserve",
    "pre_score",
    "score",
    "pre_bind",
    "bind",
    "post_bind",
    "permit",
    "pre_enqueue",
    "queue_sort",
    "placement_generate",
    "placement_score",
)
#: The twelve points in which the validation looks for plugins that were removed.
CLASSIC_POINTS: tuple[str, ...] = BUILD_ORDER[:12]
#: Extension point -> the method whose presence makes a class a plugin of that point.
POINT_METHODS: dict[str, str] = {
    **EXTENSION_POINTS,
    "placement_generate": "placement_generate",
    "placement_score": "placement_score",
}


def interface_name(point: str) -> str:
    """The name of the point in messages: `pre_filter` -> `PreFilterPlugin`."""
    key = CONFIG_KEYS[point]
    return f"{key[0].upper()}{key[1:]}Plugin"


def extension_points_of(cls: type) -> set[str]:
    """The extension points that a plugin class serves: those whose method it defines or inherits."""
    return {point for point, method in POINT_METHODS.items() if callable(getattr(cls, method, None))}


_FILTERS = ("pre_filter", "filter")
_SCORES = ("pre_score", "score")
_BOOKS = ("reserve", "pre_bind")
#: In-tree plugin -> the points it serves (§3.2).
IN_TREE_PLUGINS: Mapping[str, frozenset[str]] = {
    name: frozenset(points)
    for name, points in {
        "SchedulingGates": ("pre_enqueue",),
        "PrioritySort": ("queue_sort",),
        "NodeUnschedulable": ("filter",),
        "NodeName": ("filter",),
        "TaintToleration": ("filter", *_SCORES),
        "NodeAffinity": (*_FILTERS, *_SCORES),
        "NodePorts": _FILTERS,
        "NodeResourcesFit": (*_FILTERS, *_SCORES, "placement_score"),
        "VolumeRestrictions": _FILTERS,
        "NodeVolumeLimits": _FILTERS,
        "VolumeBinding": (*_FILTERS, *_SCORES, *_BOOKS),
        "VolumeZone": _FILTERS,
        "PodTopologySpread": (*_FILTERS, *_SCORES),
        "InterPodAffinity": (*_FILTERS, *_SCORES),
        "DynamicResources": ("pre_enqueue", *_FILTERS, "post_filter", "score", *_BOOKS),
        "DefaultPreemption": ("pre_enqueue", "post_filter"),
        "NodeResourcesBalancedAllocation": _SCORES,
        "ImageLocality": ("score",),
        "DefaultBinder": ("bind",),
        "NodeDeclaredFeatures": _FILTERS,
        "GangScheduling": ("pre_enqueue", "permit"),
        "TopologyPlacementGenerator": ("placement_generate",),
        "PodGroupPodsCount": ("placement_score",),
    }.items()
}
#: (name, weight) of the plugins that every profile has unless it says otherwise; 0 means unset (§3.1).
DEFAULT_MULTI_POINT: tuple[tuple[str, int], ...] = (
    ("SchedulingGates", 0),
    ("PrioritySort", 0),
    ("NodeUnschedulable", 0),
    ("NodeName", 0),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", 0),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", 0),
    ("NodeVolumeLimits", 0),
    ("VolumeBinding", 0),
    ("VolumeZone", 0),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 2),
    ("DefaultPreemption", 0),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", 0),
    ("NodeDeclaredFeatures", 0),
)
#: Plugins of earlier versions that a v1 configuration must not name.
REMOVED_PLUGINS: tuple[str, ...] = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
