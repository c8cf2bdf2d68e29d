"""Controls of the score plugins: a switch and a weight for each, and NodeResourcesFit's strategy."""

from __future__ import annotations

from typing import Any

import msgspec

from labkit.config.args import NodeResourcesFitArgs, ScoringStrategy, UtilizationShapePoint
from labkit.engine.framework import Framework
from labkit.i18n import t
from labkit.plugins.node_resources_fit import NodeResourcesFit
from labkit.widgets import view as v
from labkit.widgets.style import plugin_color
from labkit.widgets.view import Block

STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
_FIT = "NodeResourcesFit"
#: Likes a node that is 70 % full best, for profiles without a shape of their own.
_SHAPE = ((0, 0), (70, 10), (100, 2))


def fit_of(framework: Framework) -> NodeResourcesFit | None:
    """The NodeResourcesFit that scores in this profile, if it is kube-scheduler's own."""
    found = (p for p in framework.plugins("score") if isinstance(p, NodeResourcesFit))
    return next(found, None)


def strategy_of(framework: Framework) -> str:
    """Its strategy; "" when there is none."""
    fit = fit_of(framework)
    return "" if fit is None else fit.strategy_name


def with_strategy(fit: NodeResourcesFit, strategy: str) -> NodeResourcesFit:
    """A NodeResourcesFit that scores by `strategy`, all else as configured."""
    args = fit.args if isinstance(fit.args, NodeResourcesFitArgs) else NodeResourcesFitArgs()
    before = args.scoring_strategy
    shape = before.shape or [UtilizationShapePoint(utilization=u, score=s) for u, s in _SHAPE]
    changed = ScoringStrategy(type=strategy, resources=before.resources, shape=shape)
    return NodeResourcesFit(msgspec.structs.replace(args, scoring_strategy=changed))


def use_strategy(framework: Framework, strategy: str) -> None:
    """Score by `strategy` from now on, with the weight as it is."""
    fit = fit_of(framework)
    if fit is not None and fit.strategy_name != strategy:
        framework.replace(with_strategy(fit, strategy), weight=framework.weights()[_FIT])


def weight_controls(plugins: dict[str, int], values: dict[str, int], off: set[str]) -> list[Block]:
    """A switch and a weight for each score plugin; ids `weight.<plugin>` and `weight.<plugin>.on`."""
    return [
        v.weight(
            f"weight.{name}",
            name,
            values.get(name, default),
            on=name not in off,
            color=plugin_color(name),
            toggle_label=t(f"{name} on", f"启用 {name}"),
            weight_label=t(f"weight of {name}", f"{name} 的权重"),
            min=1,
        )
        for name, default in plugins.items()
    ]


def strategy_control(strategy: str) -> Block:
    """The list `strategy`."""
    options: list[tuple[Any, Any]] = [(s, s) for s in STRATEGIES]
    return v.select("strategy", t("NodeResourcesFit strategy", "NodeResourcesFit 策略"), strategy, options)
