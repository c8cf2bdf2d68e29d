"""One colour a plugin, everywhere (Okabe-Ito order), and the family's stylesheet."""

from __future__ import annotations

from importlib.resources import files

_COLORS = {
    "TaintToleration": "taint",
    "NodeResourcesFit": "fit",
    "NodeResourcesBalancedAllocation": "balanced",
    "PodTopologySpread": "spread",
    "ImageLocality": "image",
    "NodeAffinity": "affinity",
    "InterPodAffinity": "interpod",
    "VolumeBinding": "volume",
    "DynamicResources": "claims",
}


def plugin_color(name: str) -> str:
    """The colour name of a plugin; a learner's own plugins share one."""
    return _COLORS.get(name, "own")


def asset(name: str) -> str:
    """The text of a file in `assets/`."""
    return files("labkit.widgets").joinpath("assets", name).read_text(encoding="utf-8")
