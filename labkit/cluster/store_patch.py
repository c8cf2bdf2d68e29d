"""JSON patch (RFC 6902), merge patch (RFC 7386) and strategic merge patch, as functions of plain JSON (spec 20 §8.5).

The results share unchanged parts with the original, which is never written.
"""

from __future__ import annotations

import re
from typing import Any

from labkit.cluster.store_errors import ApiError, bad_request, cannot_patch, internal
from labkit.cluster.store_schema import Struct, copy, is_struct, json_type, struct

Json = dict[str, Any]
MAX_OPERATIONS = 10_000
_DECODING = "error decoding patch: json: cannot unmarshal"


def merge_patch(original: Any, patch: Any) -> Any:
    """RFC 7386: objects merge, null deletes, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(original) if isinstance(original, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def json_patch(original: Any, operations: Any) -> Any:
    """RFC 6902. ApiError 422 when a test fails or a path is missing, 400 when it is no patch."""
    if operations is None:
        return original
    if not isinstance(operations, list):
        raise bad_request(f"{_DECODING} {json_type(operations)} into Go value of type []handlers.jsonPatchOp")
    if len(operations) > MAX_OPERATIONS:
        raise ApiError(
            413,
            "RequestEntityTooLarge",
            f"Request entity too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got "
            f"{len(operations)}",
        )
    document = copy(original)
    for operation in operations:
        if not isinstance(operation, dict):
            raise bad_request(
                f"{_DECODING} {json_type(operation)} into Go value of type handlers.jsonPatchOp"
            )
        document = _operate(document, operation)
    return document


def _operate(document: Any, operation: Json) -> Any:
    kind, path = operation.get("op"), operation.get("path")
    if not isinstance(path, str):
        raise cannot_patch()
    if kind in ("add", "replace", "test") and "value" not in operation:
        raise cannot_patch()
    if kind == "test":
        if _read(document, path) != operation["value"]:
            raise cannot_patch()
        return document
    if kind == "remove":
        return _remove(document, path)[0]
    if kind == "replace":
        if not path:
            return copy(operation["value"])
        parent, _ = _parent(document, path)
        # The real server sets a key that is not there yet, and refuses an index that is not.
        if not isinstance(parent, dict):
            document = _remove(document, path)[0]
        return _add(document, path, copy(operation["value"]))
    if kind == "add":
        return _add(document, path, copy(operation["value"]))
    if kind in ("move", "copy"):
        source = operation.get("from")
        if not isinstance(source, str):
            raise cannot_patch()
        if kind == "copy":
            return _add(document, path, copy(_read(document, source)))
        if path == source:
            return document
        if path.startswith(source + "/"):
            raise cannot_patch()
        document, value = _remove(document, source)
        return _add(document, path, value)
    raise cannot_patch()


def _steps(path: str) -> list[str]:
    if path == "":
        return []
    # What stands before the first slash counts for nothing, as on the real server.
    _, slash, rest = path.partition("/")
    if not slash:
        raise cannot_patch()
    return [p.replace("~1", "/").replace("~0", "~") for p in rest.split("/")]


def _index(step: str, length: int) -> int:
    if not re.fullmatch(r"0|[1-9]\d{0,9}", step) or int(step) >= length:
        raise cannot_patch()
    return int(step)


def _step_into(value: Any, step: str) -> Any:
    if isinstance(value, dict) and step in value:
        return value[step]
    if isinstance(value, list):
        return value[_index(step, len(value))]
    raise cannot_patch()


def _read(document: Any, path: str) -> Any:
    for step in _steps(path):
        document = _step_into(document, step)
    return document


def _parent(document: Any, path: str) -> tuple[Any, str]:
    steps = _steps(path)
    for step in steps[:-1]:
        document = _step_into(document, step)
    return document, steps[-1]


def _add(document: Any, path: str, value: Any) -> Any:
    if not path:
        return value
    parent, step = _parent(document, path)
    if isinstance(parent, dict):
        parent[step] = value
    elif isinstance(parent, list):
        parent.insert(len(parent) if step == "-" else _index(step, len(parent) + 1), value)
    else:
        raise cannot_patch()
    return document


def _remove(document: Any, path: str) -> tuple[Any, Any]:
    if not path:
        return None, document
    parent, step = _parent(document, path)
    if isinstance(parent, dict) and step in parent:
        return document, parent.pop(step)
    if isinstance(parent, list):
        return document, parent.pop(_index(step, len(parent)))
    raise cannot_patch()


# Strategic merge

_A_MAP = "Go value of type map[string]interface {}"

_ORDER, _DELETE_PRIMITIVE, _RETAIN, _DIRECTIVE = (
    "$setElementOrder/",
    "$deleteFromPrimitiveList/",
    "$retainKeys",
    "$patch",
)


def strategic_merge_patch(original: Json, patch: Any, schema: Struct | None) -> Json:
    """Merge by the type's patch strategies and keys, obeying directives. ApiError 400 for a bad patch."""
    if patch is None:
        return original
    if not isinstance(patch, dict):
        raise bad_request(f"json: cannot unmarshal {json_type(patch)} into {_A_MAP}")
    merged: Json = _merge_map(original, patch, schema)
    return merged


def _merge_map(original: Any, patch: Json, schema: Struct | None) -> Json:
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return _clean_map({k: v for k, v in patch.items() if k != _DIRECTIVE})
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise _unknown_directive(patch)
    merged = dict(original) if isinstance(original, dict) else {}
    retained = patch.get(_RETAIN)
    if isinstance(retained, list):
        merged = {k: v for k, v in merged.items() if k in retained}
    orders = {k.removeprefix(_ORDER): v for k, v in patch.items() if k.startswith(_ORDER)}
    for key, value in patch.items():
        if key.startswith(_DELETE_PRIMITIVE):
            target = key.removeprefix(_DELETE_PRIMITIVE)
            if isinstance(value, list) and isinstance(merged.get(target), list):
                merged[target] = [v for v in merged[target] if v not in value]
        elif key in (_DIRECTIVE, _RETAIN) or key.startswith(_ORDER):
            continue
        elif value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge_field(merged.get(key), value, schema, key, orders.get(key))
    for key, order in orders.items():
        if key not in patch and isinstance(merged.get(key), list) and isinstance(order, list):
            merged[key] = _ordered(merged[key], merged[key], order, _merge_key(schema, key))
    return merged


def _field_type(schema: Struct | None, key: str) -> str:
    field = schema.fields.get(key) if schema is not None else None
    return field.type if field is not None else ""


def _merge_key(schema: Struct | None, key: str) -> str:
    field = schema.fields.get(key) if schema is not None else None
    return field.merge_key if field is not None else ""


def _merge_field(original: Any, value: Any, schema: Struct | None, key: str, order: Any) -> Any:
    type_name = _field_type(schema, key)
    if isinstance(value, dict):
        inner = struct(type_name) if type_name and is_struct(type_name) else None
        if not isinstance(original, dict):
            return _merge_map({}, value, inner)
        return _merge_map(original, value, inner)
    if not isinstance(value, list):
        return value
    field = schema.fields.get(key) if schema is not None else None
    if field is None or "merge" not in field.patch_strategy.split(","):
        return [_clean(v) for v in value]
    before = original if isinstance(original, list) else []
    if not field.merge_key:
        merged = [*before, *(v for v in value if v not in before)]
        return _ordered(merged, before, order, "") if isinstance(order, list) else merged
    item = struct(type_name[2:]) if is_struct(type_name[2:]) else None
    merged = _merge_list(before, value, field.merge_key, item)
    return _ordered(merged, before, order, field.merge_key) if isinstance(order, list) else merged


def _merge_list(original: list[Any], patch: list[Any], merge_key: str, item: Struct | None) -> list[Any]:
    merged = list(original)
    for element in patch:
        if not isinstance(element, dict):
            raise internal(f"list element types are not identical: {go_print([original, patch])}")
        directive = element.get(_DIRECTIVE)
        if directive == "replace" and len(element) == 1:
            return [_clean(e) for e in patch if e is not element]
        if merge_key not in element:
            raise internal(f"map: {go_print(element)} does not contain declared merge key: {merge_key}")
        if directive not in (None, "delete", "replace", "merge"):
            raise _unknown_directive(element)
        wanted = element[merge_key]
        at = [i for i, e in enumerate(merged) if isinstance(e, dict) and e.get(merge_key) == wanted]
        if directive == "delete":
            merged = [e for i, e in enumerate(merged) if i not in at]
        elif directive == "replace":
            replacement = _clean({k: v for k, v in element.items() if k != _DIRECTIVE})
            merged = (
                [replacement if i in at else e for i, e in enumerate(merged)]
                if at
                else [*merged, replacement]
            )
        elif at:
            merged[at[0]] = _merge_map(merged[at[0]], element, item)
        else:
            merged.append(_merge_map({}, element, item))
    return merged


def _unknown_directive(patch: Json) -> ApiError:
    return internal(f"unknown patch type: {go_print(patch[_DIRECTIVE])} in map: {go_print(patch)}")


def go_print(value: Any) -> str:
    """JSON as fmt.Print writes it: `map[a:1 b:[x y]]`, keys in order."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{k}:{go_print(v)}' for k, v in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(go_print(v) for v in value)}]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ordered(merged: list[Any], before: list[Any], order: list[Any], merge_key: str) -> list[Any]:
    """Elements that the patch orders in its order, the server's own in theirs, woven by where they stood."""

    def identity(element: Any) -> str:
        return repr(element.get(merge_key)) if merge_key and isinstance(element, dict) else repr(element)

    wanted = {identity(o): i for i, o in enumerate(order)}
    stood = {identity(b): i for i, b in enumerate(before)}
    left = sorted((m for m in merged if identity(m) in wanted), key=lambda m: wanted[identity(m)])
    right = [m for m in merged if identity(m) not in wanted]
    woven: list[Any] = []
    while left and right:
        a, b = stood.get(identity(left[0])), stood.get(identity(right[0]))
        take_left = a is None or b is None or a < b
        woven.append(left.pop(0) if take_left else right.pop(0))
    return woven + left + right


def _clean_map(value: Json) -> Json:
    cleaned: Json = _clean(value)
    return cleaned


def _clean(value: Any) -> Any:
    """A value that goes in as it is: without directives and nulls."""
    if isinstance(value, dict):
        return {
            k: _clean(v)
            for k, v in value.items()
            if v is not None
            and k not in (_DIRECTIVE, _RETAIN)
            and not k.startswith((_ORDER, _DELETE_PRIMITIVE))
        }
    if isinstance(value, list):
        return [_clean(v) for v in value]
    return value
