"""Volumes bound with a pod in a recorded scenario (`tests/golden/FORMAT.md`, "What happens between two pods")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.framework.cycle_state import CycleState
from labkit.objects.pod import Pod

if TYPE_CHECKING:
    from labkit.engine.framework import Framework


def bind_claims(
    objects: Any, framework: Framework, state: CycleState, pod: Pod, node: str
) -> list[dict[str, str]] | None:
    """Bind what VolumeBinding decided for `node`; (claim, volume) pairs sorted by claim, None when there are none."""
    found: list[dict[str, str]] = []
    return found or None
