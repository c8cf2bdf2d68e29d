"""What all profiles of one scheduler share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from labkit.framework.clock import Clock, VirtualClock
from labkit.framework.snapshot import Snapshot
from labkit.objects.pod import Pod

if TYPE_CHECKING:
    from labkit.framework.handle import ObjectLister


class NoObjects:
    """An ObjectLister over nothing."""

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        """None."""
        return None

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        """Empty."""
        return ()


def _ignore(*_: Any) -> None:
    """Nobody listens."""


@dataclass
class Services:
    """Clock, cache view, object lister, client, nominator, waiting pods, event recorder, extenders, gates.

    `nominator` needs `pods_for(node_name) -> list[Pod]`, `add(pod, node_name)` and `delete(pod)`; `waiting`
    needs `list()`, `get(uid)`, `reject(uid, message)`; `cancel_in_memory(pod, plugin)` answers whether a victim
    was cancelled before its binding.
    """

    clock: Clock = field(default_factory=VirtualClock)
    snapshot: Snapshot = field(default_factory=Snapshot)
    objects: ObjectLister = field(default_factory=NoObjects)
    client: Any = None
    nominator: Any = None
    waiting: Any = None
    extenders: list[Any] = field(default_factory=list)
    gates: dict[str, bool] = field(default_factory=dict)
    profiles: tuple[str, ...] = ()
    metrics: Any = None
    activate: Callable[[Iterable[Pod]], None] = _ignore
    record_event: Callable[[Pod, str, str, str, str], None] = _ignore
    cancel_in_memory: Callable[[Pod, str], bool] = lambda pod, plugin: False
