"""Normalising and integer arithmetic that several plugins share (spec 10 §10.0)."""

from __future__ import annotations

from typing import Any

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


def default_normalize_batch(scores: Any, *, reverse: bool, max_priority: int = MAX_NODE_SCORE) -> Any:
    """The same on an int64 array of raw scores that are not negative; None when some are."""
    low, top = (int(scores.min()), int(scores.max())) if len(scores) else (0, 0)
    if low < 0:
        return None
    if top == 0:
        return scores + max_priority if reverse else scores
    scaled = max_priority * scores // top
    return max_priority - scaled if reverse else scaled
