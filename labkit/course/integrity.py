"""Notices when a submission has changed labkit, Python or the interpreter, and puts it back before a check runs.

Runs inside the box. Compared are functions, classes and their methods by identity, and functions' code, so
honest use (new plugins, registries, caches) is never reported. What cannot be put back afterwards (tracing the checks,
looking through the interpreter's objects, writing its memory) is refused while the notebook runs.

A submission runs in the same interpreter as the checks on it, so this makes cheating visible and hard, not impossible.
"""

from __future__ import annotations

import builtins
import signal
import sys
import threading
import types
from typing import Any

_FUNCTIONS = (types.FunctionType, staticmethod, classmethod, property)
_CONSTANTS = (str, int, float, tuple, frozenset)
_MISSING = object()
#: Of the standard library, what the runner and checks are made of.
_STANDARD = [
    "ast",
    "collections",
    "contextlib",
    "copy",
    "dataclasses",
    "fractions",
    "functools",
    "html",
    "http.client",
    "inspect",
    "io",
    "itertools",
    "json",
    "json.encoder",
    "json.decoder",
    "math",
    "operator",
    "os",
    "random",
    "re",
    "signal",
    "statistics",
    "textwrap",
    "threading",
    "time",
    "traceback",
    "types",
    "urllib.request",
    "msgspec",
]
_REFUSED = [
    "sys.settrace",
    "sys.setprofile",
    "sys.monitoring.register_callback",
    "gc.get_objects",
    "gc.get_referrers",
    "gc.get_referents",
    "ctypes.dlopen",
    "ctypes.dlsym",
    "ctypes.dlsym/handle",
    "ctypes.addressof",
    "ctypes.cdata",
    "ctypes.cdata/buffer",
    "ctypes.string_at",
    "ctypes.memoryview_at",
    "ctypes.PyObj_FromPtr",
    "ctypes.call_function",
]
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


class Snapshot:
    """What labkit, Python and the interpreter were when nothing of the submission had run."""

    def __init__(self) -> None:
        self._modules = {
            n: m for n, m in sys.modules.items() if n == "labkit" or n.startswith("labkit.") or n in _STANDARD
        }
        self._names: list[tuple[str, Any, str, Any]] = []
        self._code: list[tuple[str, types.FunctionType, types.CodeType, Any, Any]] = []
        seen: set[int] = set()
        for name, module in self._modules.items():
            checks = name.startswith("labkit.check")
            for key, value in list(vars(module).items()):
                if isinstance(value, types.FunctionType | types.BuiltinFunctionType | type):
                    self._names.append((name, module, key, value))
                    self._take(value, seen)
                elif checks and (isinstance(value, types.ModuleType) or _is_constant(key, value)):
                    self._names.append((name, module, key, value))
        for key, value in list(vars(builtins).items()):
            if callable(value) and not key.startswith("_"):
                self._names.append(("builtins", builtins, key, value))
        self._names.append(("builtins", builtins, "__import__", builtins.__import__))
        self._streams = sys.stdout, sys.stderr
        self._writers = [(s, dict(vars(s))) for s in self._streams]
        self._handlers = {n: signal.getsignal(n) for n in signal.valid_signals() if _may_be_caught(n)}
        self._attempts: list[str] = []
        sys.addaudithook(self._refuse)

    def _take(self, value: Any, seen: set[int]) -> None:
        module = str(getattr(value, "__module__", ""))
        if id(value) in seen or not (module.startswith("labkit") or module in _STANDARD):
            return
        seen.add(id(value))
        if isinstance(value, types.FunctionType):
            self._take_code(value)
            return
        if not isinstance(value, type):
            return
        for key, member in list(vars(value).items()):
            if isinstance(member, _FUNCTIONS):
                self._names.append((value.__qualname__, value, key, member))
                function = getattr(member, "__func__", getattr(member, "fget", member))
                if isinstance(function, types.FunctionType) and id(function) not in seen:
                    seen.add(id(function))
                    self._take_code(function)

    def _take_code(self, function: types.FunctionType) -> None:
        kept = (function.__code__, function.__defaults__, dict(function.__kwdefaults__ or {}) or None)
        self._code.append((function.__qualname__, function, *kept))

    def _refuse(self, event: str, _: Any) -> None:
        if event in _REFUSED:
            self._attempts.append(event)
            raise RuntimeError(f"{event} is not allowed while a submission is graded")

    def restore(self) -> list[str]:
        """Put back what was changed; its names."""
        changed = [*dict.fromkeys(self._attempts)]
        self._attempts.clear()
        for name, module in self._modules.items():
            if sys.modules.get(name) is not module:
                sys.modules[name] = module
                changed.append(name)
        for where, owner, key, value in self._names:
            if vars(owner).get(key, _MISSING) is not value:
                setattr(owner, key, value)
                changed.append(f"{where}.{key}")
        for name, function, code, defaults, kwdefaults in self._code:
            if (function.__code__, function.__defaults__, function.__kwdefaults__) != (
                code,
                defaults,
                kwdefaults,
            ) or function.__code__ is not code:
                function.__code__, function.__defaults__ = code, defaults
                function.__kwdefaults__ = dict(kwdefaults) if kwdefaults else None
                changed.append(name)
        self._restore_interpreter()
        return changed

    def _restore_interpreter(self) -> None:
        """Streams, signals and timers: honest code leaves these behind too, so it is no finding."""
        sys.stdout, sys.stderr = self._streams
        for stream, own in self._writers:
            vars(stream).clear()
            vars(stream).update(own)
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        if threading.current_thread() is threading.main_thread():
            for number, handler in self._handlers.items():
                if handler is not None and signal.getsignal(number) is not handler:
                    signal.signal(number, handler)


def _is_constant(key: str, value: Any) -> bool:
    return key.lstrip("_").isupper() and isinstance(value, _CONSTANTS)


def _may_be_caught(number: int) -> bool:
    return number not in (signal.SIGKILL, signal.SIGSTOP) and number < 32
