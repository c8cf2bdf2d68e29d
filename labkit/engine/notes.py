"""The text of events, as kube-scheduler writes it (spec 01 §8.1)."""

from __future__ import annotations

import re

_MAX_NOTE = 1024
_VERB = re.compile(r"%([-+# 0]*)(\d*)(?:\.(\d*))?(.?)", re.DOTALL)


def event_note(message: str) -> str:
    """The note of a FailedScheduling event: cut to 1024 bytes, and read as a format without arguments."""
    data = message.encode()
    if len(data) > _MAX_NOTE:
        message = data[: _MAX_NOTE - 4].decode("utf-8", "replace") + " ..."
    return _VERB.sub(_render, message) if "%" in message else message


def _render(match: re.Match[str]) -> str:
    verb = match[4]
    if verb == "":
        return "%!(NOVERB)"
    if verb == "%":
        return "%"
    return f"%!{verb}(MISSING)"
