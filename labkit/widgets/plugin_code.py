"""A learner's plugin as text: compiled with a limit on its steps, its faults told with their line."""

from __future__ import annotations

import ast
import linecache
from typing import Any

from labkit.engine.trace import Trace
from labkit.i18n import t

FILE = "<your plugin>"
#: Rounds of loops and calls of functions that the code may make for one click.
MOST_STEPS = 2_000_000
_TICK = "__labkit_tick__"


class PluginCodeError(Exception):
    """The code cannot be used; the text says why and where."""


class TooManySteps(Exception):
    """The code went on and on."""


class _Counted(ast.NodeTransformer):
    """Puts a call of the counter at the start of every loop's body and every function."""

    def _body(self, node: Any) -> Any:
        self.generic_visit(node)
        tick = ast.Expr(ast.Call(ast.Name(_TICK, ast.Load()), [], []))
        docstring = 1 if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None else 0
        node.body.insert(docstring, ast.copy_location(tick, node))
        return node

    visit_For = visit_While = visit_FunctionDef = _body


class PluginCode:
    """Compiled plugin code. `reset()` gives it its steps anew; `make()` gives a new plugin object."""

    def __init__(self, source: str) -> None:
        """PluginCodeError when it is no Python, has no plugin class, or fails to run."""
        self._left = MOST_STEPS
        try:
            tree = ast.parse(source, FILE)
        except SyntaxError as e:
            raise PluginCodeError(t(f"line {e.lineno}: {e.msg}", f"第 {e.lineno} 行：{e.msg}")) from None
        names = [n.name for n in tree.body if isinstance(n, ast.ClassDef)]
        if not names:
            raise PluginCodeError(t("define a class: it becomes the plugin", "请定义一个类，它就是插件"))
        tree = ast.fix_missing_locations(_Counted().visit(tree))
        linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
        self._namespace: dict[str, Any] = {"__name__": "your_plugin", _TICK: self._tick}
        try:
            exec(compile(tree, FILE, "exec"), self._namespace)
        except Exception as e:
            raise PluginCodeError(_located(e)) from None
        self.name = names[-1]
        self._class = self._namespace[self.name]

    def _tick(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise TooManySteps(
                t(
                    f"the plugin made more than {MOST_STEPS:,} steps; is there a loop without an end?",
                    f"插件执行超过 {MOST_STEPS:,} 步；是不是有死循环？",
                )
            )

    def reset(self) -> None:
        """All steps are free again."""
        self._left = MOST_STEPS

    def make(self) -> Any:
        """A new plugin object. PluginCodeError when its __init__ fails or it serves no extension point."""
        self.reset()
        try:
            made = self._class()
        except Exception as e:
            raise PluginCodeError(_located(e)) from None
        from labkit.framework.plugin import EXTENSION_POINTS

        methods = {"queue_sort": "less"}
        if not any(callable(getattr(made, methods.get(p, p), None)) for p in EXTENSION_POINTS):
            raise PluginCodeError(
                t(
                    f"class {self.name} has none of the methods filter, score, permit, ...",
                    f"类 {self.name} 没有 filter、score、permit 等任何方法",
                )
            )
        return made


def _located(error: BaseException) -> str:
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILE:
            line = trace.tb_lineno
        trace = trace.tb_next
    where = t(f"line {line}: ", f"第 {line} 行：") if line else ""
    return f"{where}{type(error).__name__}: {error}"


def fault_of(trace: Trace) -> tuple[str, str] | None:
    """(message, the learner's part of the traceback) when a decision ended in an error."""
    if trace.error is None:
        return None
    lines = (trace.error.traceback or "").splitlines()
    starts = [i for i, line in enumerate(lines) if FILE in line]
    own = lines[starts[0] :] if starts else []
    return trace.error.message, "\n".join(line for line in own if "labkit/" not in line)
