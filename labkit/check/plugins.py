"""Checks that run a learner's plugin in the engine, beside the plugin of kube-scheduler that it should equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from labkit.check.clusters import cluster, node_rows, pod_text
from labkit.check.report import PACKAGE, Case, Exercise, Words, show
from labkit.i18n import t

if TYPE_CHECKING:
    from labkit.engine.trace import Trace

#: Seeds of the cases that learners see, and of the hidden ones.
VISIBLE, HIDDEN = range(3), range(100, 130)


def run(
    plugins: Iterable[Any],
    scenario: Mapping[str, Any],
    *,
    only: bool = True,
    at: Iterable[str] = ("multiPoint",),
    args: Mapping[str, Any] | None = None,
) -> dict[str, Trace]:
    """Schedule the scenario's pods with these plugins; the trace of each pod by name.

    Default plugins are given by name. `only` leaves out those not named, and runs the named ones at the points
    `at` (as a configuration calls them: "filter", "preScore", ...). `args` are pluginConfig args by plugin name.
    """
    from labkit.engine.replay import Replay
    from labkit.quiz.model import Scenario
    from labkit.quiz.scenario import API_VERSION, engine_input

    plugins = list(plugins)
    in_tree = [p for p in plugins if isinstance(p, str)]
    own = [_made(p) for p in plugins if not isinstance(p, str)]
    profile: dict[str, Any] = {"schedulerName": "default-scheduler"}
    if only:
        enabled = {"multiPoint": [{"name": "PrioritySort"}, {"name": "DefaultBinder"}]}
        for point in at:
            enabled.setdefault(point, []).extend({"name": n} for n in in_tree if _serves(n, point))
        profile["plugins"] = {point: {"enabled": names} for point, names in enabled.items()}
        profile["plugins"]["multiPoint"]["disabled"] = [{"name": "*"}]
    if args:
        profile["pluginConfig"] = [{"name": n, "args": dict(a)} for n, a in args.items()]
    given = {k: v for k, v in scenario.items() if k in ("nodes", "placed", "pods", "objects")}
    raw = engine_input(Scenario(**given))
    raw["config"] = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}
    replay = Replay(raw, plugins=own)
    for framework in replay.frameworks.values():
        for plugin in own:
            if getattr(plugin, "handle", framework) is None:
                plugin.handle = framework
    return {trace.pod.removeprefix("default/"): trace for trace in replay.run()}


def _serves(name: str, point: str) -> bool:
    from labkit.config import IN_TREE_PLUGINS

    snake = "".join("_" + ch.lower() if ch.isupper() else ch for ch in point)
    return point == "multiPoint" or snake in IN_TREE_PLUGINS.get(name, ())


def _made(plugin: Any) -> Any:
    """An object of a learner's class, with or without the two usual arguments."""
    if not isinstance(plugin, type):
        return plugin
    try:
        return plugin(None, None)
    except TypeError:
        return plugin()


def score_plugin(
    plugin: Any,
    *,
    like: str,
    points: float,
    seeds: Iterable[int] = VISIBLE,
    args: Mapping[str, Any] | None = None,
    compare: str = "normalized",
    taints: bool = False,
    hint: Words | None = None,
) -> Exercise:
    """The learner's Score plugin must give the scores of the default plugin `like`, on generated clusters.

    `args` configure `like`; `compare` is "raw" or "normalized" (what counts for the scheduler). Pass
    `seeds=check.HIDDEN` in hidden tests.
    """
    exercise = Exercise(points)
    for number, seed in enumerate(seeds, 1):
        made = cluster(seed, taints=taints)
        with exercise.case(f"cluster {number}", f"集群 {number}", hint=hint) as case:
            _is_plugin(case, plugin, "score")
            expected = run([like], made, at=("preScore", "score"), args={like: args} if args else None)["web"]
            got = run([plugin], made)["web"]
            wanted = {
                n: getattr(s.plugins[like], compare) for n, s in expected.scores.items() if like in s.plugins
            }
            _no_error(case, got)
            name = _name(plugin)
            have = {n: getattr(s.plugins[name], compare) for n, s in got.scores.items() if name in s.plugins}
            _compare(case, made, wanted, have, t("score", "分数"))
    return exercise


def filter_plugin(
    plugin: Any,
    *,
    like: str,
    points: float,
    seeds: Iterable[int] = VISIBLE,
    args: Mapping[str, Any] | None = None,
    reasons: bool = False,
    taints: bool = False,
    hint: Words | None = None,
) -> Exercise:
    """The learner's Filter plugin must accept and reject the nodes that the default plugin `like` does.

    With `reasons` its code and reasons must be the same too.
    """
    exercise = Exercise(points)
    for number, seed in enumerate(seeds, 1):
        made = cluster(seed, taints=taints)
        with exercise.case(f"cluster {number}", f"集群 {number}", hint=hint) as case:
            _is_plugin(case, plugin, "filter")
            expected = run([like], made, args={like: args} if args else None)["web"]
            got = run([plugin], made)["web"]
            _no_error(case, got)
            _compare(case, made, _verdicts(expected, reasons), _verdicts(got, reasons), t("verdict", "判定"))
    return exercise


def scenario(
    plugins: Iterable[Any],
    given: Mapping[str, Any],
    expect: Mapping[str, Mapping[str, Any]],
    *,
    points: float,
    only: bool = False,
    name: Words = ("the decisions", "调度决定"),
    hint: Words | None = None,
) -> Exercise:
    """With these plugins beside the default ones, pods must get these decisions.

    `given` is `{nodes, placed, pods, objects}` in short form, `expect` facts of the trace by pod, as in question
    banks: `{"web": {"bound": "n2", "filter.n1.plugin": "MyFilter"}}`. One case a fact. An attempt that ends in an
    error holds none of its pod's facts, unless one of them speaks of an error.
    """
    from labkit.quiz.evidence import look_up

    exercise = Exercise(points)
    traces: dict[str, Trace] = {}
    decisions: dict[str, Any] = {}
    failed: Exception | None = None
    try:
        traces = run(plugins, given, only=only)
        decisions = {n: trace.to_dict() for n, trace in traces.items()}
    except Exception as e:
        failed = e
    for pod, facts in expect.items():
        of_error = any("error" in path.lower() or wanted == "Error" for path, wanted in facts.items())
        for path, wanted in facts.items():
            with exercise.case(f"{name[0]}: {pod} {path}", f"{name[1]}：{pod} {path}", hint=hint) as case:
                if failed is not None:
                    raise failed
                if pod in traces and not of_error:
                    _no_error(case, traces[pod])
                decision = decisions.get(pod, {})
                if decision.get("message"):
                    case.table(
                        [t("message of kube-scheduler", "kube-scheduler 的消息")], [[decision["message"]]]
                    )
                case.equal(look_up(decision, path), wanted, path, path)
    return exercise


def _name(plugin: Any) -> str:
    from labkit.framework.plugin import plugin_name

    return plugin_name(plugin)


def _is_plugin(case: Case, plugin: Any, method: str) -> None:
    if not callable(getattr(plugin, method, None)):
        kind = show(plugin)
        case.fail(
            f"A plugin with a method `{method}` is needed, this is {kind}.",
            f"需要一个有 `{method}` 方法的插件，这里是 {kind}。",
        )


def _no_error(case: Case, trace: Trace) -> None:
    """An Error status ends the attempt; a plugin that is not written yet says so."""
    error = trace.error or next((s for s in trace.filter.values() if s.code.label == "Error"), None)
    if error is None:
        return
    text = trace.message or "; ".join(error.reasons)
    if "NotImplementedError" in text:
        raise NotImplementedError
    case.detail = own_frames(error.traceback)
    case.fail(text, text)


def own_frames(text: str) -> str:
    """A traceback's text without the frames of labkit: where in the learner's code it happened."""
    kept, skipping = [], False
    for line in text.splitlines():
        if line.startswith('  File "'):
            skipping = line.startswith(f'  File "{PACKAGE}')
        elif not line.startswith(" "):
            skipping = False
        if not skipping:
            kept.append(line)
    return "\n".join(kept[-20:])


def _verdicts(trace: Trace, reasons: bool) -> dict[str, str]:
    """Node -> "pass" or "reject", with code and reasons on demand. Nodes that PreFilter left out count as rejected."""
    found = {}
    for node, status in trace.filter.items():
        if status.is_success:
            found[node] = "✓"
        else:
            found[node] = f"✕ {status.code.label}: {', '.join(sorted(status.reasons))}" if reasons else "✕"
    return found


def _compare(
    case: Case, made: Mapping[str, Any], wanted: Mapping[str, Any], have: Mapping[str, Any], what: str
) -> None:
    wrong = [n for n in made["nodes"] if n in wanted and have.get(n) != wanted[n]]
    if not wrong:
        return
    rows = [[*row, wanted.get(row[0], "–"), have.get(row[0], "–")] for row in node_rows(dict(made))]
    head = [
        t("node", "节点"),
        "allocatable",
        t("requests of its pods", "其上 Pod 的 request"),
        "taints",
        t("expected", "应为"),
        t("yours", "你的"),
    ]
    case.table(head, rows)
    first, pod = wrong[0], pod_text(dict(made))
    more = len(wrong)
    case.fail(
        f"{what} of {first}: expected {wanted.get(first)}, got {have.get(first)} ({more} of {len(made['nodes'])} nodes "
        f"differ). The pod requests {pod}.",
        f"{first} 的{what}：应为 {wanted.get(first)}，得到 {have.get(first)}（{len(made['nodes'])} 个节点中有 {more} 个不同）。"
        f"Pod 请求 {pod}。",
    )
