"""Request bodies: their size, their content type, JSON, YAML and protobuf (spec 20 §2)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from labkit.cluster.apiserver import protobuf
from labkit.cluster.store_errors import ApiError, bad_request

MAX_BODY = 3 * 1024 * 1024
#: Aliases in YAML are shared, so a short text can mean a huge object; this many parts are enough for 3 MiB.
MAX_YAML_PARTS = 300_000
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
PATCH_TYPES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}
Receive = Callable[[], Awaitable[dict[str, Any]]]


class ClientGone(Exception):
    """The client closed the connection in the middle of its request."""


_TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


async def read_body(receive: Receive, declared: str | None) -> bytes:
    """The whole body. ApiError 413 as soon as it is known to be too large, ClientGone when it ends early."""
    if declared is not None and declared.isdigit() and int(declared) > MAX_BODY:
        raise too_large()
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > MAX_BODY:
            raise too_large()
        chunks.append(chunk)
        if not message.get("more_body"):
            return b"".join(chunks)


def too_large() -> ApiError:
    """413."""
    message = f"Request entity too large: limit is {MAX_BODY}"
    return ApiError(413, "RequestEntityTooLarge", message, {})


def media_type(content_type: str | None) -> str:
    """The bare media type of a Content-Type header; JSON when there is none."""
    return (content_type or JSON).split(";")[0].strip().lower()


def parse_object(body: bytes, content_type: str | None, kind: str) -> dict[str, Any]:
    """A body that must be an object. ApiError 415 for other content types, 400 when it is malformed."""
    media = media_type(content_type)
    if media == PROTOBUF:
        return protobuf.decode(body)
    if media == JSON:
        parsed = parse_json(body, kind)
    elif media == YAML:
        parsed = parse_yaml(body)
    else:
        raise ApiError(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json, "
            "application/yaml, application/vnd.kubernetes.protobuf",
        )
    if not isinstance(parsed, dict):
        raise _unrecognized(
            kind, f"json: cannot unmarshal {_type(parsed)} into Go value of type {_TYPE_META}", body
        )
    return parsed


def parse_patch(body: bytes, content_type: str | None) -> tuple[Any, str]:
    """A patch and its type (`json`, `merge`, `strategic`, `apply`). ApiError 415, 400."""
    patch_type = PATCH_TYPES.get(media_type(content_type)) if content_type else None
    if patch_type is None:
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    if patch_type == "apply":
        return parse_yaml(body), patch_type
    try:
        return msgspec.json.decode(body), patch_type
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise bad_request(_go_json_error(body)) from None


def parse_json(body: bytes, kind: str) -> Any:
    """Any JSON. ApiError 400 in the words of the real server."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _unrecognized(kind, _go_json_error(body), body) from None


def _unrecognized(kind: str, why: str, body: bytes) -> ApiError:
    shown = body[:1024].decode(errors="replace") or "<empty>"
    return bad_request(
        f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: "
        f"{why} ({shown})"
    )


def _go_json_error(body: bytes) -> str:
    try:
        json.loads(body)
    except json.JSONDecodeError as e:
        if e.pos >= len(e.doc.rstrip()):
            return "unexpected end of JSON input"
        character = e.doc[e.pos]
        where = "looking for beginning of value"
        if "property name" in e.msg:
            where = "looking for beginning of object key string"
        elif "delimiter" in e.msg:
            where = "after object key" if "':'" in e.msg else "after object key:value pair"
        elif "Extra data" in e.msg:
            where = "after top-level value"
        return f"invalid character '{character}' {where}"
    except (ValueError, RecursionError):
        pass
    return "invalid JSON"


def parse_yaml(body: bytes) -> Any:
    """One YAML (or JSON) document. ApiError 400 when it is malformed or explodes."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    import yaml

    try:
        parsed = yaml.load(body, Loader=_yaml_loader())
    except (yaml.YAMLError, ValueError, UnicodeDecodeError) as e:
        problem = getattr(e, "problem", None) or str(e).splitlines()[0]
        mark = getattr(e, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise bad_request(f"error converting YAML to JSON: yaml: {where}{problem}") from None
    _count(parsed, [0])
    return parsed


def _yaml_loader() -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        """Leaves times as text, as JSON does."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in base.yaml_implicit_resolvers.items()
    }
    return Loader


def _count(value: Any, seen: list[int]) -> None:
    seen[0] += 1
    if seen[0] > MAX_YAML_PARTS:
        raise bad_request("error converting YAML to JSON: document contains excessive aliasing")
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise bad_request(f"error converting YAML to JSON: key {key!r} is no string")
            _count(inner, seen)
    elif isinstance(value, list):
        for inner in value:
            _count(inner, seen)
    elif value is not None and not isinstance(value, (str, int, float, bool)):
        raise bad_request(f"error converting YAML to JSON: {type(value).__name__} is no JSON value")


def _type(value: Any) -> str:
    if isinstance(value, list):
        return "array"
    return "string" if isinstance(value, str) else "number" if isinstance(value, (int, float)) else "null"
