"""Answers: status, headers, and objects as bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from labkit.cluster.store_errors import ApiError

encode = msgspec.json.encode
_NO_CACHE = "no-cache, private"


@dataclass
class Response:
    """One complete answer."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)

    def start(self) -> dict[str, Any]:
        """The ASGI message with status and headers."""
        headers = {
            "cache-control": _NO_CACHE,
            "content-type": self.content_type,
            "content-length": str(len(self.body)),
        }
        headers.update(self.headers)
        return {
            "type": "http.response.start",
            "status": self.status,
            "headers": [(k.encode("latin-1"), v.encode("latin-1", "replace")) for k, v in headers.items()],
        }


def json_response(obj: Any, status: int = 200, *, pretty: bool = False) -> Response:
    """An object as JSON; a newline ends it, as Go's encoder does."""
    body = encode(obj)
    if pretty:
        body = msgspec.json.format(body, indent=2)
    return Response(status, body + b"\n")


def yaml_response(obj: Any, status: int = 200) -> Response:
    """An object as YAML."""
    import yaml

    text = yaml.safe_dump(obj, allow_unicode=True, sort_keys=True)
    return Response(status, text.encode(), "application/yaml")


def text_response(text: str, status: int = 200) -> Response:
    """Plain text."""
    return Response(status, text.encode(), "text/plain; charset=utf-8", {"x-content-type-options": "nosniff"})


def error_response(error: ApiError) -> Response:
    """An error as a Status."""
    response = json_response(error.to_status(), error.code)
    if error.retry_after is not None:
        response.headers["retry-after"] = str(error.retry_after)
    return response


def with_warnings(response: Response, warnings: Iterable[str]) -> Response:
    """Add `Warning:` headers; kubectl prints them."""
    told = []
    for warning in list(dict.fromkeys(warnings))[:20]:
        escaped = warning.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        told.append(f'299 - "{escaped[:1000]}"')
    if told:
        response.headers["warning"] = ", ".join(told)
    return response


def bare(obj: dict[str, Any]) -> dict[str, Any]:
    """An object as it stands in a list: without kind and apiVersion."""
    return {k: v for k, v in obj.items() if k not in ("kind", "apiVersion")}


def list_body(kind: str, api_version: str, meta: dict[str, Any], items: list[dict[str, Any]]) -> bytes:
    """A list of objects as JSON."""
    head = encode({"kind": f"{kind}List", "apiVersion": api_version, "metadata": meta})[:-1]
    return b"".join((head, b',"items":[', b",".join([encode(bare(o)) for o in items]), b"]}\n"))
