"""Server-side tables: what `kubectl get` prints (spec 20 §4.3)."""

from __future__ import annotations

from typing import Any

from labkit.cluster.apiserver.table_cells import COLUMNS, DEFAULT
from labkit.cluster.apiserver.table_text import Cells, age
from labkit.cluster.apiserver.table_text import columns as columns_of
from labkit.cluster.store_types import ResourceType

Json = dict[str, Any]


def columns(resource: ResourceType) -> list[Json]:
    """The column definitions of a resource."""
    return _definitions(_table(resource))


def _definitions(cells: Cells) -> list[Json]:
    found = []
    for name, type_, priority in cells.columns:
        format_ = "name" if name == "Name" else ""
        found.append(
            {
                "name": name,
                "type": type_,
                "format": format_,
                "description": _about(name),
                "priority": priority,
            }
        )
    return found


def _about(name: str) -> str:
    return {
        "Name": "The name of the object, unique in its namespace.",
        "Age": "Time since the object was created.",
    }.get(name, f"{name} of the object.")


def _table(resource: ResourceType) -> Cells:
    return COLUMNS.get((resource.group, resource.kind)) or COLUMNS.get(("", resource.kind)) or DEFAULT


def row(resource: ResourceType, obj: Json, now: float, include: str) -> Json:
    """One row; `include` says what of the object it carries (`Metadata`, `Object`, `None`)."""
    return _row(_table(resource), obj, now, include)


def _row(table: Cells, obj: Json, now: float, include: str) -> Json:
    cells = table.cells(obj, now)
    if include == "None":
        return {"cells": cells, "object": None}
    return {"cells": cells, "object": obj if include == "Object" else partial(obj)}


def partial(obj: Json) -> Json:
    """The object's metadata alone."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def table(
    resource: ResourceType,
    objects: list[Json],
    meta: Json,
    now: float,
    include: str,
    *,
    with_columns: bool = True,
) -> Json:
    """A Table of objects."""
    found: Json = {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": meta,
        "columnDefinitions": columns(resource) if with_columns else [],
        "rows": [row(resource, o, now, include) for o in objects],
    }
    return found


def scale_table(scale: Json, now: float, include: str) -> Json:
    """A Scale as a Table: what `kubectl get --subresource=scale` shows."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": scale["metadata"].get("resourceVersion", "")},
        "columnDefinitions": _definitions(_SCALE),
        "rows": [_row(_SCALE, scale, now, include)],
    }


_SCALE = Cells(
    columns_of("Name, Desired:integer, Available:integer, Age"),
    lambda scale, now: [
        scale["metadata"]["name"],
        scale["spec"].get("replicas", 0),
        scale["status"]["replicas"],
        age(scale, now),
    ],
)
