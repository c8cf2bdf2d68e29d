"""Checks of a learner's KubeSchedulerConfiguration: would kube-scheduler start with it, and where do pods go then?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from labkit.check.report import Case, Exercise, Words
from labkit.i18n import t

_EMPTY = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration}"
#: The weight of a case that the default configuration passes too.
_AS_BEFORE = 0.2


def configuration(
    text: Any,
    *,
    points: float,
    given: Mapping[str, Any] | None = None,
    expect: Mapping[str, str | None] | None = None,
    weights: Mapping[str, Mapping[str, int]] | None = None,
    without: Mapping[str, Mapping[str, Iterable[str]]] | None = None,
    hint: Words | None = None,
) -> Exercise:
    """A configuration (YAML text) must be accepted, have these plugins, and place these pods.

    `given` is `{nodes, placed, pods}` in the short form of question banks, `expect` pod -> node (None: no node).
    `weights` is profile -> score plugin -> weight, `without` is profile -> extension point -> plugins not there.
    What an empty configuration does as well counts a fifth.
    """
    exercise = Exercise(points)
    profiles: dict[str, Any] = {}
    with exercise.case(
        "kube-scheduler starts with it", "kube-scheduler 能用它启动", weight=0, hint=hint
    ) as case:
        profiles = _frameworks(case, text)
    before = {"default-scheduler": _default_weights()}
    usual = _decide(_EMPTY, given or {}) if expect else {}
    for profile, wanted in (weights or {}).items():
        for plugin, weight in wanted.items():
            with exercise.case(
                f"profile {profile}: weight of {plugin}",
                f"profile {profile}：{plugin} 的权重",
                weight=_AS_BEFORE if before.get(profile, {}).get(plugin) == weight else 1,
            ) as case:
                framework = _profile(case, profiles, profile)
                have = framework.weights().get(plugin)
                case.equal(have, weight, f"weight of {plugin}", f"{plugin} 的权重")
    for profile, by_point in (without or {}).items():
        for point, plugins in by_point.items():
            for plugin in plugins:
                with exercise.case(
                    f"profile {profile}: {point} without {plugin}",
                    f"profile {profile}：{point} 中没有 {plugin}",
                ) as case:
                    framework = _profile(case, profiles, profile)
                    names = _names(framework, point)
                    case.true(
                        plugin not in names,
                        f"{plugin} still runs at {point}: {', '.join(names)}",
                        f"{plugin} 仍在 {point} 运行：{', '.join(names)}",
                    )
    traces: dict[str, Any] | None = None
    for pod, node in (expect or {}).items():
        where = node or t("nowhere", "无处可放")
        same = pod in usual and usual[pod].skipped is None and usual[pod].node == node
        with exercise.case(
            f"pod {pod} → {where}", f"Pod {pod} → {where}", weight=_AS_BEFORE if same else 1, hint=hint
        ) as case:
            _profile(case, profiles, None)
            if traces is None:
                traces = _decide(text, given or {})
            _placed(case, traces.get(pod), pod, node)
    return exercise


def _default_weights() -> dict[str, int]:
    from labkit.config import default_config
    from labkit.engine.build import build_frameworks
    from labkit.engine.services import Services

    (framework,) = build_frameworks(default_config(), Services()).values()
    return framework.weights()


def _frameworks(case: Case, text: Any) -> dict[str, Any]:
    from labkit.config import check_config, load_config
    from labkit.engine.build import build_frameworks
    from labkit.engine.services import Services
    from labkit.errors import LabError

    if not isinstance(text, str):
        case.fail("the configuration must be YAML text", "配置必须是 YAML 文本")
    try:
        check_config(text)
        return dict(build_frameworks(load_config(text), Services()))
    except LabError as e:
        case.fail(f"kube-scheduler refuses it: {e}", f"kube-scheduler 拒绝它：{e}")
    return {}


def _profile(case: Case, profiles: Mapping[str, Any], name: str | None) -> Any:
    if not profiles:
        case.fail("there is no running scheduler to look at", "没有可以查看的调度器")
    if name is None:
        return None
    if name not in profiles:
        known = ", ".join(profiles)
        case.fail(f"there is no profile {name}; there are: {known}", f"没有 profile {name}；现有：{known}")
    return profiles[name]


def _names(framework: Any, point: str) -> list[str]:
    from labkit.framework.plugin import plugin_name

    return [plugin_name(p) for p in framework.plugins(point)]


def _decide(text: str, given: Mapping[str, Any]) -> dict[str, Any]:
    import yaml

    from labkit.engine.replay import Replay
    from labkit.quiz.model import Scenario
    from labkit.quiz.scenario import engine_input

    raw = engine_input(Scenario(**given))
    raw["config"] = yaml.safe_load(text)
    return {trace.pod.removeprefix("default/"): trace for trace in Replay(raw).run()}


def _placed(case: Case, trace: Any, pod: str, node: str | None) -> None:
    if trace is None:
        case.fail(f"pod {pod} was not tried", f"没有尝试 Pod {pod}")
    if trace.skipped is not None and node is not None:
        case.fail(
            f"no profile answers to the schedulerName of pod {pod}",
            f"没有 profile 对应 Pod {pod} 的 schedulerName",
        )
    if trace.scores:
        rows = [
            [name, *(str(s.weighted) for s in scores.plugins.values()), str(scores.total)]
            for name, scores in sorted(trace.scores.items())
        ]
        case.table([t("node", "节点"), *trace.weights, t("total", "总分")], rows)
    got = trace.node or t("nowhere", "无处可放")
    wanted = node or t("nowhere", "无处可放")
    if trace.node != node and not (trace.node is not None and len(trace.best) > 1 and node in trace.best):
        case.fail(f"pod {pod} goes to {got}, not to {wanted}", f"Pod {pod} 去了 {got}，而不是 {wanted}")
