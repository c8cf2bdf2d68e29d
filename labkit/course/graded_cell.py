"""Runs one cell of checks, by itself: nothing of IPython's that a submission could have bent takes part.

The cell sees the submission's names, but the builtins are Python's own, and its result is read here: not from what
was displayed. The cell's text is in no history and no line cache.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import traceback
from collections.abc import Iterable
from typing import Any

_compile, _exec, _eval, _repr, _type = compile, exec, eval, repr, type
_FILE = "<checks>"


def parsed(source: str) -> ast.Module | None:
    """The cell's code; None when it needs IPython (magics)."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return None


def run_checks(tree: ast.Module, names: dict[str, Any], keep: Iterable[str]) -> list[dict[str, Any]]:
    """Run it with the submission's `names`; its result or its error as outputs, at most one.

    Names that hide a builtin are left out, but for those in `keep`. New names are added to `names`.
    """
    hidden = set(vars(builtins)) - set(keep)
    space = {k: v for k, v in names.items() if k not in hidden}
    space["__builtins__"] = builtins
    before = dict(space)
    last = tree.body[-1] if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    body = ast.Module(tree.body[:-1] if last is not None else tree.body, type_ignores=[])
    value: Any = None
    try:
        _exec(_compile(body, _FILE, "exec"), space)
        if last is not None:
            value = _eval(_compile(ast.Expression(last.value), _FILE, "eval"), space)
        found = [] if value is None else [_result(value)]
        if bent := sorted((hidden & set(space)) - bound(tree) - {"__builtins__"}):
            found = [_error(RuntimeError(f"changed from outside while the checks ran: {', '.join(bent)}"))]
    except BaseException as e:
        found = [_error(e)]
    for key, new in space.items():
        if before.get(key) is not new and key not in hidden:
            names[key] = new
    return found


def bound(tree: ast.Module) -> set[str]:
    """Names that code binds: functions, classes, variables, imports."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).split(".")[0])
    return found


def _result(value: Any) -> dict[str, Any]:
    data: dict[str, Any] = {}
    with contextlib.suppress(Exception):
        bundle = getattr(_type(value), "_repr_mimebundle_", None)
        page = getattr(_type(value), "_repr_html_", None)
        shown = (
            bundle(value) if bundle is not None else {"text/html": page(value)} if page is not None else {}
        )
        data = {k: v for k, v in shown.items() if _type(k) is str and _type(v) is str}
    # The points are in the text.
    data["text/plain"] = _repr(value)
    return {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": None}


def _error(error: BaseException) -> dict[str, Any]:
    try:
        said = str(error)[:2000]
        lines = traceback.format_exception(error)[-30:]
    except BaseException:
        said, lines = "", []
    name = str(_type(error).__name__)
    return {"output_type": "error", "ename": name, "evalue": said, "traceback": lines}
