"""Which plugins may be asked once for many nodes or pods, and how: their optional quick methods.

`sign_pod(pod) -> Hashable | None`: `filter` and `score` look at nothing but what this value stands for and at the
node; equal values, equal answers on a node that has not changed. None: not for this pod.
`filter_batch(state, pod) -> FilterCodes | None`: the verdicts about all nodes of the snapshot at once.
`score_batch(state, pod, at) -> array | None`: raw scores of the nodes with these indexes.
`normalize_batch(state, pod, nodes, scores) -> array | None`: `normalize_score` on an array.

A subclass or an instance that has its own `filter` or `score` does not get its parent's quick methods: they would
say what the parent's say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: quick method -> the per-node methods whose place it takes
_STANDS_FOR = {
    "sign_pod": ("filter", "score"),
    "filter_batch": ("filter",),
    "score_batch": ("score",),
    "normalize_batch": ("normalize_score",),
}


def quick(plugin: Any, method: str) -> Callable[..., Any] | None:
    """The plugin's quick method, when it has one that can be trusted."""
    found: Callable[..., Any] | None = getattr(plugin, method, None)
    if found is None or not callable(found):
        return None
    per_node = _STANDS_FOR[method]
    if any(name in getattr(plugin, "__dict__", ()) for name in per_node):
        return None
    order = type(plugin).__mro__
    definer = next((i for i, cls in enumerate(order) if method in cls.__dict__), None)
    if definer is None:
        return None
    for cls in order[:definer]:
        if any(name in cls.__dict__ for name in per_node):
            return None
    return found
