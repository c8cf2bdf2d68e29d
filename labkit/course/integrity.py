"""Notices when a submission has changed labkit, Python or the interpreter, and puts it back before a check runs.

Runs inside the box. Compared are functions, classes and their methods by identity, and functions' code, so
honest use (new plugins, registries, caches) is never reported. What cannot be put back afterwards (tracing the checks,
looking through the interpreter's objects, writing its memory) is refused while the notebook runs.

A submission runs in the same interpreter as the checks on it, so this makes cheating visible and hard, not impossible.
"""

from __future__ import annotations

import builtins
import contextlib
import signal
import sys
import sysconfig
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
#: Attributes and functions that lead to the frames of callers, and so to what the runner holds.
_FRAMES_OF = ("tb_frame", "gi_frame", "cr_frame", "ag_frame")
#: What a function is made of.
_PARTS = ("__code__", "__defaults__", "__kwdefaults__")
_FRAMES = ("sys._getframe", "sys._current_frames", "sys._current_exceptions")
#: Modules that hand frames out, and their functions that only show places in the code.
_GIVERS = ("inspect", "logging", "traceback", "bdb", "pdb", "asyncio.base_tasks")
_SHOW = {"logging": ("findCaller",), "traceback": ("extract", "_extract_from_extended_frame_gen")}
_INSTALLED = tuple(dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))))
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


class Snapshot:
    """What labkit, Python and the interpreter were when nothing of the submission had run."""

    def __init__(self) -> None:
        self._modules = {
            n: m for n, m in sys.modules.items() if n == "labkit" or n.startswith("labkit.") or n in _STANDARD
        }
        self._names: list[tuple[str, Any, str, Any]] = []
        #: Functions whose code may not be exchanged, by identity; the list keeps them alive.
        self._functions: dict[int, types.FunctionType] = {}
        self._inner: list[tuple[str, Any, Any]] = []
        self._tables: list[tuple[str, Any, Any]] = []
        seen: set[int] = set()
        for name, module in self._modules.items():
            checks = name.startswith("labkit.check")
            for key, value in list(vars(module).items()):
                if isinstance(value, types.FunctionType | types.BuiltinFunctionType | type):
                    self._names.append((name, module, key, value))
                    self._take(value, seen)
                elif isinstance(value, dict | list | set) and key.lstrip("_").isupper():
                    self._names.append((name, module, key, value))
                    self._tables.append((f"{name}.{key}", value, value.copy()))
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
        self._own_names = {n: set(vars(m)) for n, m in self._modules.items()}
        self._builtins = frozenset(vars(builtins))
        self._libraries = {n.split(".")[0] for n in sys.modules} | sys.stdlib_module_names
        self._libraries -= {"__main__"}
        self._looking = False
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
        self._functions[id(function)] = function
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):
                self._inner.append((function.__qualname__, cell, cell.cell_contents))
        if function.__kwdefaults__:
            self._tables.append(
                (function.__qualname__, function.__kwdefaults__, dict(function.__kwdefaults__))
            )

    def _refuse(self, event: str, args: Any) -> None:
        what = ""
        if event in _REFUSED:
            what = event
        elif event == "object.__getattr__" and args[1] in _FRAMES_OF and not self._may_have_frames(False):
            what = args[1]
        elif event in _FRAMES and not self._looking and not self._may_have_frames(True):
            what = event
        elif event == "object.__setattr__" and args[1] in _PARTS and id(args[0]) in self._functions:
            what = args[1]
        if what:
            self._attempts.append(what)
            raise RuntimeError(f"{what} is not allowed while a submission is graded")

    def _may_have_frames(self, of_callers: bool) -> bool:
        """Libraries use frames for good reasons; a submission gets none, nor through a library that hands them out."""
        self._looking = True
        try:
            frame: types.FrameType | None = sys._getframe(2)
        finally:
            self._looking = False
        name = self._library_of(frame)
        while frame is not None and name in _GIVERS:
            # Who wants it: a function that shows only places in the code, or IPython, or the lab.
            if frame.f_code.co_name in _SHOW.get(name, ()) and not (of_callers and name == "traceback"):
                return True
            frame = frame.f_back
            name = self._library_of(frame)
        return bool(name)

    def _library_of(self, frame: types.FrameType | None) -> str:
        """The module whose code it is; empty for a submission's."""
        found = frame.f_globals.get("__name__") if frame is not None else None
        module = sys.modules.get(found) if isinstance(found, str) else None
        if module is None or frame is None or vars(module) is not frame.f_globals:
            return ""
        known = str(found).split(".")[0] in self._libraries
        file = getattr(module, "__file__", None)
        return str(found) if known or (isinstance(file, str) and file.startswith(_INSTALLED)) else ""

    @staticmethod
    def is_attempt(name: str) -> bool:
        """Whether a name among the changes is of something refused, which changed nothing."""
        return name in _REFUSED or name in _FRAMES or name in _FRAMES_OF or name in _PARTS

    def restore(self) -> list[str]:
        """Put back what was changed; its names."""
        changed = [*dict.fromkeys(self._attempts)]
        self._attempts.clear()
        for name, module in self._modules.items():
            if sys.modules.get(name) is not module:
                sys.modules[name] = module
                changed.append(name)
            # A name that hides a builtin from the module's own code.
            for key in (vars(module).keys() - self._own_names[name]) & self._builtins:
                delattr(module, key)
                changed.append(f"{name}.{key}")
        for where, owner, key, value in self._names:
            if vars(owner).get(key, _MISSING) is not value:
                setattr(owner, key, value)
                changed.append(f"{where}.{key}")
        for name, cell, content in self._inner:
            if cell.cell_contents is not content:
                cell.cell_contents = content
                changed.append(name)
        for name, table, content in self._tables:
            if not _still_there(content, table):
                table.clear()
                table.extend(content) if isinstance(table, list) else table.update(content)
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


def _still_there(content: Any, table: Any) -> bool:
    """Tables may grow, as registries and caches do; what was in them must be as it was."""
    if isinstance(content, dict):
        return all(table.get(key, _MISSING) is value for key, value in content.items())
    if isinstance(content, set):
        return all(item in table for item in content)
    return len(content) <= len(table) and all(a is b for a, b in zip(content, table, strict=False))


def _is_constant(key: str, value: Any) -> bool:
    return key.lstrip("_").isupper() and isinstance(value, _CONSTANTS)


def _may_be_caught(number: int) -> bool:
    return number not in (signal.SIGKILL, signal.SIGSTOP) and number < 32
