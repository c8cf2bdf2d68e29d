"""The scratch pad of one scheduling attempt (spec 01 §1.2)."""

from __future__ import annotations

from typing import Any


class MissingStateError(KeyError):
    """A plugin's earlier extension point did not run: nothing was written under its key.

    Raised in a plugin, it is the attempt's error with this very text (a profile may disable PreFilter and keep
    Filter).
    """

    def __str__(self) -> str:
        return str(self.args[0])


class CycleState:
    """Key -> data for one pod and one attempt, from PreFilter to PostBind.

    Plugins write what they computed once and read it per node. `clone` copies each value with its own
    `clone()` when it has one (the plugin decides how deep), else shares it. The framework's own fields are
    shared by clones.
    """

    __slots__ = (
        "_data",
        "parallel_pre_bind_plugins",
        "pods_to_activate",
        "skip_filter_plugins",
        "skip_pre_bind_plugins",
        "skip_score_plugins",
    )

    def __init__(self) -> None:
        self._data: dict[str, Any] = {}
        self.skip_filter_plugins: set[str] = set()
        self.skip_score_plugins: set[str] = set()
        self.skip_pre_bind_plugins: set[str] = set()
        self.parallel_pre_bind_plugins: set[str] = set()
        #: "namespace/name" -> Pod: plugins fill it, the framework activates these pods after success.
        self.pods_to_activate: dict[str, Any] = {}

    def read(self, key: str, doing: str = "reading") -> Any:
        """The value under `key`; MissingStateError `<doing> "<key>" from cycleState: not found` when there is none."""
        try:
            return self._data[key]
        except KeyError:
            raise MissingStateError(f'{doing} "{key}" from cycleState: not found') from None

    def get(self, key: str, default: Any = None) -> Any:
        """The value under `key`, or `default`."""
        return self._data.get(key, default)

    def write(self, key: str, value: Any) -> None:
        """Store `value`, replacing what was there."""
        self._data[key] = value

    def delete(self, key: str) -> None:
        """Forget `key`; nothing happens when it is absent."""
        self._data.pop(key, None)

    def clone(self) -> CycleState:
        """A copy for a what-if: values are cloned, the framework's fields are shared."""
        copy = CycleState.__new__(CycleState)
        copy._data = {k: v.clone() if hasattr(v, "clone") else v for k, v in self._data.items()}
        copy.skip_filter_plugins = self.skip_filter_plugins
        copy.skip_score_plugins = self.skip_score_plugins
        copy.skip_pre_bind_plugins = self.skip_pre_bind_plugins
        copy.parallel_pre_bind_plugins = self.parallel_pre_bind_plugins
        copy.pods_to_activate = self.pods_to_activate
        return copy
