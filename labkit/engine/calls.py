"""Calling a learner's plugin safely: exceptions and wrong answers become Error statuses that say what to do."""

from __future__ import annotations

import traceback
from typing import Any

from labkit.framework.cycle_state import MissingStateError
from labkit.framework.plugin import plugin_name
from labkit.framework.status import Status

#: What a plugin may raise without ending anything but its own call: `exit()` in a cell is a mistake, no wish.
RAISED = (Exception, SystemExit)


class PluginError(Exception):
    """A plugin raised or answered nonsense. The text names plugin, extension point, node, value and fix."""


def raised(plugin: object, point: str, error: BaseException, node: str = "") -> Status:
    """The status of a call that raised; the traceback is kept for the trace."""
    if isinstance(error, MissingStateError):
        return Status.as_error_of(error, plugin=plugin_name(plugin))
    on = f' on node "{node}"' if node else ""
    text = f"{plugin_name(plugin)}.{point}{on} raised {type(error).__name__}: {error}"
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    return Status.as_error_of(PluginError(text), plugin=plugin_name(plugin), traceback="".join(lines))


def wrong_type(plugin: object, point: str, value: Any, expected: str, node: str = "") -> Status:
    """The status of a call that returned something that is no answer."""
    on = f' for node "{node}"' if node else ""
    text = f"{plugin_name(plugin)}.{point} returned {value!r} ({type(value).__name__}){on}; return {expected}"
    return Status.as_error_of(PluginError(text), plugin=plugin_name(plugin))


def as_status(plugin: object, point: str, value: Any, node: str = "") -> Status | None:
    """`value` where None or a Status is expected."""
    if value is None or isinstance(value, Status):
        return value
    expected = "None for success, or a Status such as Status.unschedulable('why')"
    return wrong_type(plugin, point, value, expected, node)


def call_status(plugin: Any, point: str, *args: Any, node: str = "") -> Status | None:
    """Call `plugin.<point>(*args)` where a status is expected."""
    try:
        return as_status(plugin, point, getattr(plugin, point)(*args), node)
    except RAISED as e:
        return raised(plugin, point, e, node)


def call_pair(
    plugin: Any, point: str, kind: type | tuple[type, ...], *args: Any, expected: str
) -> tuple[Any, Status | None]:
    """Call where `(value, status)`, a value of `kind` alone or a status alone is expected."""
    try:
        answer = getattr(plugin, point)(*args)
    except RAISED as e:
        return None, raised(plugin, point, e)
    if isinstance(answer, tuple) and len(answer) == 2:
        value, status = answer
        if isinstance(value, Status) or isinstance(status, kind):
            value, status = status, value
        if (value is None or isinstance(value, kind)) and (status is None or isinstance(status, Status)):
            return value, status
        return None, wrong_type(plugin, point, answer, expected)
    if answer is None or isinstance(answer, Status):
        return None, answer
    if isinstance(answer, kind):
        return answer, None
    return None, wrong_type(plugin, point, answer, expected)


def failure(prefix: str, status: Status | None) -> Status:
    """The Error that the framework makes of a plugin's status: `prefix` before its text."""
    assert status is not None
    return Status.as_error_of(prefix + status.message, plugin=status.plugin, traceback=status.traceback)


def quote(text: str) -> str:
    """Text in double quotes, as Go's %q prints plain names."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
