"""Plugin args as validation messages quote them: the scheduler's inner types, with their Go field names."""

from __future__ import annotations

from typing import Any

import msgspec

from labkit.config.args import (
    NodeAffinityArgs,
    PluginArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from labkit.config.gotypes import written
from labkit.config.schema import NODE_AFFINITY, SPREAD_CONSTRAINT


def inner_args(args: PluginArgs) -> dict[str, Any]:
    """Field names and values in the order of Go's JSON; empty lists are nil."""
    if isinstance(args, NodeAffinityArgs):
        added = args.added_affinity
        return {"AddedAffinity": None if added is None else written(NODE_AFFINITY, added)}
    return {_go_name(name): _inner(name, getattr(args, name)) for name in args.__struct_fields__}


def _go_name(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _inner(name: str, value: Any) -> Any:
    match value:
        case []:
            return None
        case list() if name == "default_constraints":
            return [written(SPREAD_CONSTRAINT, item) for item in value]
        case list():
            return [_inner("", item) for item in value]
        case ResourceSpec() | UtilizationShapePoint():
            return {_go_name(field): part for field, part in msgspec.structs.asdict(value).items()}
        case ScoringStrategy():
            ratio = None if value.shape is None else {"Shape": _inner("", value.shape)}
            resources = _inner("", value.resources)
            return {"Type": value.type, "Resources": resources, "RequestedToCapacityRatio": ratio}
        case None | bool() | int() | str():
            return value
    return str(value)
