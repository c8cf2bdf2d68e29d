"""Kubernetes objects out of YAML and JSON text, one dict each, with the place they stand at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from labkit.errors import InputError
from labkit.i18n import t
from labkit.objects.meta import RawObject

#: Values that a document with aliases may stand for.
_MAX_EXPANDED = 2_000_000


@dataclass(frozen=True)
class Document:
    """One object as it was written: the whole dict, the file, and the document's number from 1."""

    raw: RawObject
    source: str = "<input>"
    number: int = 1

    @property
    def label(self) -> str:
        """`Pod default/web`, for messages."""
        return describe(self.raw)


def describe(raw: Any) -> str:
    """`Pod default/web`, as far as the object says."""
    if not isinstance(raw, dict):
        return "object"
    meta = raw.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    name = meta.get("name") or meta.get("generateName") or "(no name)"
    namespace = meta.get("namespace")
    return f"{raw.get('kind') or 'object'} {f'{namespace}/' if namespace else ''}{name}"


def load_documents(text: str, source: str = "<input>") -> list[Document]:
    """All objects in YAML or JSON text; several documents and List objects are flattened, empty ones dropped.

    InputError with file, document number and line when the text is malformed.
    """
    return list(_documents(text, source))


def _documents(text: str, source: str) -> Iterator[Document]:
    for number, raw in enumerate(_parsed(text, source), start=1):
        if raw is None:
            continue
        yield from _flatten(raw, source, number)


def _flatten(raw: Any, source: str, number: int) -> Iterator[Document]:
    if not isinstance(raw, dict):
        raise InputError(
            t(
                f"expected a Kubernetes object, got {type(raw).__name__}",
                f"应为 Kubernetes 对象，实际为 {type(raw).__name__}",
            ),
            file=source,
            document=number,
            hint=t(
                "each document needs apiVersion, kind and metadata",
                "每个文档都要有 apiVersion、kind 和 metadata",
            ),
        )
    if isinstance(raw.get("items"), list) and str(raw.get("kind", "")).endswith("List"):
        item_kind = str(raw["kind"]).removesuffix("List")
        for item in raw["items"]:
            if item is None:
                continue
            if isinstance(item, dict) and item_kind and "kind" not in item:
                item = {"kind": item_kind, "apiVersion": raw.get("apiVersion", ""), **item}
            yield from _flatten(item, source, number)
        return
    yield Document({str(k): v for k, v in raw.items()}, source, number)


def _parsed(text: str, source: str) -> Iterator[Any]:
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped.startswith(("{", "[")):
        try:
            documents = list(_json_stream(stripped))
        except (ValueError, RecursionError):
            pass
        else:
            yield from documents
            return
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    number = 0
    try:
        for raw in yaml.load_all(text, Loader=_loader(loader)):
            if "*" in text:
                _refuse_alias_bomb(raw, source, number + 1)
            number += 1
            yield raw
    except InputError:
        raise
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        line = ""
        if mark is not None:
            row, column = mark.line + 1, mark.column + 1
            line = t(f"line {row}, column {column}: ", f"第 {row} 行第 {column} 列：")
        problem = getattr(e, "problem", None) or str(e).splitlines()[0]
        raise InputError(
            t(f"{line}malformed YAML: {problem}", f"{line}YAML 格式错误：{problem}"),
            file=source,
            document=number + 1,
            hint=t("check the indentation and quotes around that line", "请检查该行附近的缩进和引号"),
        ) from None
    except (ValueError, RecursionError) as e:
        raise InputError(
            t(f"malformed YAML: {e}", f"YAML 格式错误：{e}"), file=source, document=number + 1
        ) from None


def _json_stream(text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    at = 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        yield value
        while at < len(text) and text[at] in " \t\r\n":
            at += 1


def _refuse_alias_bomb(raw: Any, source: str, number: int) -> None:
    sizes: dict[int, int] = {}

    def size(value: Any) -> int:
        if not isinstance(value, (dict, list)):
            return 1
        known = sizes.get(id(value))
        if known is None:
            # An alias of itself finds this while it is being measured.
            sizes[id(value)] = _MAX_EXPANDED
            inner = value.values() if isinstance(value, dict) else value
            known = sizes[id(value)] = 1 + sum(size(v) for v in inner)
        return known

    if size(raw) >= _MAX_EXPANDED:
        raise InputError(
            "aliases (*name) make this document endless or far too large",
            file=source,
            document=number,
            hint="write the repeated parts out",
        )


def _loader(base: Any) -> Any:
    global _LOADER
    if _LOADER is None:
        # Times stay text, as the API server sends them.
        class Loader(base):  # type: ignore[misc]
            """SafeLoader without implicit timestamps; keys are text, as in JSON."""

            def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
                found = super().construct_mapping(node, deep)
                return {k if isinstance(k, str) else _key(k): v for k, v in found.items()}

        Loader.yaml_implicit_resolvers = {
            first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
            for first, resolvers in base.yaml_implicit_resolvers.items()
        }
        _LOADER = Loader
    return _LOADER


_LOADER: Any = None


def _key(key: Any) -> str:
    if key is None:
        return "null"
    return str(key).lower() if isinstance(key, bool) else str(key)
