"""Normalising and integer arithmetic that several plugins share (spec 10 §10.0)."""

from __future__ import annotations

from labkit.framework.results import MAX_NODE_SCORE, NodeScore


def truncating_div(a: int, b: int) -> int:
    """int64 division as Go does it: towards zero."""
    q = abs(a) // abs(b)
    return q if (a >= 0) == (b >= 0) else -q


def default_normalize_score(
    scores: list[NodeScore], *, reverse: bool, max_priority: int = MAX_NODE_SCORE
) -> None:
    """Scale raw scores by their maximum to 0..max_priority; `reverse` makes the lowest raw score the best."""
    top = max((s.score for s in scores), default=0)
    if top <= 0:
        if reverse:
            for s in scores:
                s.score = max_priority
        return
    for s in scores:
        scaled = truncating_div(max_priority * s.score, top)
        s.score = max_priority - scaled if reverse else scaled
