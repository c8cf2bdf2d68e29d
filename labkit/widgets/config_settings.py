"""Settings and plugin arguments of two configurations side by side: what differs, each by its path in the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from labkit.config import SchedulerConfig
from labkit.config.output import completed
from labkit.i18n import t
from labkit.widgets import view as v
from labkit.widgets.view import Block

#: Told by tables of their own, or the same in every file.
_LEFT_OUT = ("apiVersion", "kind", "profiles", "plugins", "pluginConfig", "schedulerName")


def settings(config: SchedulerConfig, profile: str) -> dict[str, str]:
    """Path -> value, defaults filled in: the file's own settings, then those of a profile and its plugins' arguments.

    A profile that the file does not have adds nothing.
    """
    raw = completed(config)
    found = dict(_leaves({k: x for k, x in raw.items() if k not in _LEFT_OUT}, ""))
    for one in raw["profiles"]:
        if one["schedulerName"] != profile:
            continue
        found |= _leaves({k: x for k, x in one.items() if k not in _LEFT_OUT}, "profile.")
        for entry in one.get("pluginConfig", []):
            args = entry["args"] or {}
            found |= _leaves({k: x for k, x in args.items() if k not in _LEFT_OUT}, f"{entry['name']}.")
    return found


def settings_table(before: dict[str, str], after: dict[str, str]) -> Block:
    """One row for each value that differs."""
    paths = [p for p in dict.fromkeys([*after, *before]) if before.get(p) != after.get(p)]
    if not paths:
        return v.text(
            t("Settings and plugin arguments are the same.", "各项设置与插件参数都相同。"), mute=True
        )
    rows = [v.row(path, before.get(path), v.strong(after[path]) if path in after else None) for path in paths]
    columns = [
        v.column(t("Setting", "设置")),
        v.column(t("lab now", "lab 现在")),
        v.column(t("this file", "本文件")),
    ]
    return v.table(columns, rows)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}{key}." if _holds(inner) else f"{path}{key}")
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            at = f"{path.removesuffix('.')}[{number}]"
            yield from _leaves(inner, f"{at}." if _holds(inner) else at)
    elif not path.endswith("."):
        yield path, _word(value)


def _holds(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)
