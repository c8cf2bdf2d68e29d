"""Pod shapes: hashable values for the parts of a pod that a plugin looks at (see `labkit.engine.shapes`)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec

from labkit.objects.pod import Pod


def encoded(value: Any) -> bytes:
    """The same bytes for equal values; b"" for absent and empty ones."""
    return msgspec.json.encode(value) if value else b""


def tolerations(pod: Pod) -> Hashable:
    """What TaintToleration and NodeUnschedulable look at."""
    return encoded(pod.spec.tolerations)
