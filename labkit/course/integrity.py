"""Notices when a submission has changed labkit or Python's builtins, and puts them back before a test runs.

Runs inside the box. Compared are functions, classes and their methods by identity, and functions' code, so
honest use (new plugins, registries, caches) is never reported.
"""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any

_FUNCTIONS = (types.FunctionType, staticmethod, classmethod, property)
_MISSING = object()


class Snapshot:
    """What labkit and the builtins were when nothing of the submission had run."""

    def __init__(self) -> None:
        self._modules = {n: m for n, m in sys.modules.items() if n == "labkit" or n.startswith("labkit.")}
        self._names: list[tuple[str, Any, str, Any]] = []
        self._code: list[tuple[str, types.FunctionType, types.CodeType, Any]] = []
        seen: set[int] = set()
        for name, module in self._modules.items():
            for key, value in list(vars(module).items()):
                if isinstance(value, types.FunctionType | type):
                    self._names.append((name, module, key, value))
                    self._take(value, seen)
        for key, value in list(vars(builtins).items()):
            if callable(value) and not key.startswith("_"):
                self._names.append(("builtins", builtins, key, value))
        self._names.append(("builtins", builtins, "__import__", builtins.__import__))

    def _take(self, value: Any, seen: set[int]) -> None:
        if id(value) in seen or not str(getattr(value, "__module__", "")).startswith("labkit"):
            return
        seen.add(id(value))
        if isinstance(value, types.FunctionType):
            self._code.append((value.__qualname__, value, value.__code__, value.__defaults__))
            return
        for key, member in list(vars(value).items()):
            if isinstance(member, _FUNCTIONS):
                self._names.append((value.__qualname__, value, key, member))
                function = getattr(member, "__func__", getattr(member, "fget", member))
                if isinstance(function, types.FunctionType) and id(function) not in seen:
                    seen.add(id(function))
                    self._code.append(
                        (function.__qualname__, function, function.__code__, function.__defaults__)
                    )

    def restore(self) -> list[str]:
        """Put back what was changed; its names."""
        changed = []
        for name, module in self._modules.items():
            if sys.modules.get(name) is not module:
                sys.modules[name] = module
                changed.append(name)
        for where, owner, key, value in self._names:
            if vars(owner).get(key, _MISSING) is not value:
                setattr(owner, key, value)
                changed.append(f"{where}.{key}")
        for name, function, code, defaults in self._code:
            if function.__code__ is not code or function.__defaults__ is not defaults:
                function.__code__, function.__defaults__ = code, defaults
                changed.append(name)
        return changed
