"""From the text of a configuration to decoded v1 data, with kube-scheduler's own errors (spec 03 §5 and §8)."""

from __future__ import annotations

from typing import Any

from labkit.config.errors import ConfigError
from labkit.config.gojson import JsonError, Node, parse
from labkit.config.gotext import go_quote
from labkit.config.gotypes import DecodeError, Decoder, Struct
from labkit.config.goyaml import YamlError, yaml_to_json
from labkit.config.schema import API_VERSION, CONFIG_KIND, CONFIGURATION, GROUP, KINDS, VERSION
from labkit.config.types import OpaqueArgs

_META_TYPE = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)
_SCHEME = 'in scheme "pkg/scheduler/apis/config/scheme/scheme.go:29"'
_STRICT = "strict decoding error: "


class _Refused(Exception):
    """Decoding stops here with this text."""


def decode(data: bytes) -> dict[str, Any]:
    """The v1 object in `data`; each `pluginConfig` entry's `args` is a dict, an OpaqueArgs or None.

    Raises ConfigError of stage "load".
    """
    try:
        kind, value, strict = _decode_document(data, None)
        if kind is CONFIGURATION:
            strict += _decode_all_args(value)
        if strict:
            raise _Refused(_STRICT + ", ".join(dict.fromkeys(strict)))
        if kind is not CONFIGURATION:
            raise _Refused(f"couldn't decode as {CONFIG_KIND}, got {API_VERSION}, Kind={kind.short}: ")
    except _Refused as refused:
        raise ConfigError("load", str(refused)) from None
    except RecursionError:
        raise ConfigError("load", "exceeded max depth") from None
    return value


def _decode_document(data: bytes, default_kind: str | None) -> tuple[Struct, dict[str, Any], list[str]]:
    """The Go type, the decoded struct and the strict errors of one document. Raises _Refused."""
    strict: list[str] = []
    text = data
    if not data.lstrip(b" \t\r\n\v\f").startswith(b"{"):
        try:
            text, duplicates = yaml_to_json(data)
        except YamlError as error:
            raise _Refused(str(error)) from None
        if duplicates:
            strict.append("\n".join(["yaml: unmarshal errors:", *duplicates]))
    try:
        node = parse(text)
    except JsonError as error:
        raise _Refused(f"couldn't get version/kind; json parse error: {error}") from None
    kind = _kind_of(node, data, default_kind)
    state = Decoder()
    try:
        value = kind.decode(node, state)
    except DecodeError as error:
        raise _Refused(str(error)) from None
    if state.first_error is not None:
        raise _Refused(state.first_error)
    return kind, value if isinstance(value, dict) else {}, strict + list(state.strict)


def _kind_of(node: Node, data: bytes, default_kind: str | None) -> Struct:
    """The registered type that `apiVersion` and `kind` name; they match in any letter case here."""
    found = {"apiversion": "", "kind": ""}
    error = None
    if node.kind not in ("object", "null"):
        error = f"json: cannot unmarshal {node.kind} into Go value of type {_META_TYPE}"
    for key, member in node.value if node.kind == "object" else ():
        name = key.casefold()
        if name in found and member.kind == "string":
            found[name] = member.value
        elif name in found and member.kind != "null" and error is None:
            shown = "apiVersion" if name == "apiversion" else name
            error = f"json: cannot unmarshal {member.kind} into Go struct field .{shown} of type string"
    if error is not None:
        raise _Refused(f"couldn't get version/kind; json parse error: {error}")
    group, version = _group_version(found["apiversion"])
    kind = found["kind"]
    if default_kind is not None:
        kind = kind or default_kind
        if not version and group in ("", GROUP):
            group, version = GROUP, VERSION
    whole = data.decode("utf-8", "replace")
    if not kind:
        raise _Refused(f"Object 'Kind' is missing in '{whole}'")
    if not version:
        raise _Refused(f"Object 'apiVersion' is missing in '{whole}'")
    if (group, version) != (GROUP, VERSION) or kind not in KINDS:
        shown = f"{group}/{version}" if group else version
        raise _Refused(f"no kind {go_quote(kind)} is registered for version {go_quote(shown)} {_SCHEME}")
    return KINDS[kind]


def _group_version(api_version: str) -> tuple[str, str]:
    if api_version in ("", "/"):
        return "", ""
    if api_version.count("/") > 1:
        raise _Refused(f"unexpected GroupVersion string: {api_version}")
    group, _, version = api_version.rpartition("/")
    return group, version


def _decode_all_args(configuration: dict[str, Any]) -> list[str]:
    """Decode the args of every profile in place; returns the strict errors. Raises _Refused."""
    strict = []
    for i, profile in enumerate(configuration.get("profiles", [])):
        for j, entry in enumerate(profile.get("pluginConfig", [])):
            place = f"decoding .profiles[{i}].pluginConfig[{j}]: "
            try:
                found = _decode_args(entry)
            except _Refused as refused:
                raise _Refused(f"{place}{refused}") from None
            if found:
                strict.append(place + found)
    return strict


def _decode_args(entry: dict[str, Any]) -> str | None:
    name = entry.get("name", "")
    raw: Node | None = entry.get("args")
    wanted = f"{name}Args"
    if wanted not in KINDS:
        entry["args"] = OpaqueArgs(raw.compact(), raw.plain()) if raw is not None else None
        return None
    doing = f"decoding args for plugin {name}: "
    try:
        kind, value, strict = _decode_document(raw.raw if raw is not None else b"", wanted)
    except _Refused as refused:
        raise _Refused(f"{doing}{refused}") from None
    if kind.short != wanted:
        raise _Refused(f"args for plugin {name} were not of type {wanted}.{GROUP}, got {kind.short}.{GROUP}")
    entry["args"] = value
    return f"{_STRICT}{doing}{_STRICT}{', '.join(strict)}" if strict else None
