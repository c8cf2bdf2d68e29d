"""Answers extender requests with labkit plugins; knows nothing of HTTP.

Any plugin object with a Filter, Score, PostFilter or Bind method is served: `filter` as /filter, `score` as
/prioritize, `post_filter` as /preempt, `bind` as /bind. PreFilter, PreScore and NormalizeScore run where a
plugin has them. Scores of 0..100 become the protocol's 0..10. A plugin that raises or returns the wrong type
makes the answer's `Error`; it never stops the server.
"""

from __future__ import annotations

import importlib
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from labkit.errors import LabError
from labkit.extender import wire
from labkit.extender.handle import ExtenderHandle
from labkit.extender.received import NamedNodes, NodeSource, ReceivedNode, decode_pod
from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import plugin_name
from labkit.framework.results import NodeScore, NodeToStatus, PostFilterResult, PreFilterResult
from labkit.framework.snapshot import Snapshot
from labkit.framework.status import Code, Status
from labkit.objects.meta import ObjectMeta
from labkit.objects.pod import Pod

#: Under this key of the CycleState a PostFilter plugin finds the candidates: node name -> `wire.NodeVictims`.
VICTIMS_KEY = "extender/victims"
#: Highest score of the protocol.
MAX_EXTENDER_PRIORITY = 10
NO_NODES = (
    "neither Nodes nor NodeNames is set: kube-scheduler sends one of them "
    "(NodeNames when the extender is configured with nodeCacheCapable: true)"
)


class PluginFailure(Exception):
    """A plugin raised or answered nonsense; the text becomes the response's `Error`."""


class RequestRecord(msgspec.Struct):
    """One request, as the log and the extender inspector show it. Durations in milliseconds."""

    number: int
    verb: str
    pod: str
    form: str
    nodes: int
    kept: int
    failed: dict[str, str]
    scores: dict[str, int]
    error: str
    milliseconds: float = 0.0
    traceback: str = ""


class ExtenderService:
    """Plugins behind the protocol. Plugins may be swapped while requests are being answered."""

    def __init__(
        self,
        plugins: Sequence[object],
        *,
        client: Any = None,
        node_source: NodeSource | None = None,
        log_size: int = 1000,
    ) -> None:
        self.handle = ExtenderHandle(client)
        self._names = NamedNodes(node_source)
        self.log: deque[RequestRecord] = deque(maxlen=log_size)
        self._count = 0
        self.plugins: tuple[object, ...] = ()
        for p in plugins:
            self.replace(p)

    # --- plugins ------------------------------------------------------------------------------------------

    def replace(self, plugin: object) -> None:
        """Serve `plugin`, in the place of the one with the same name if there is one. Takes effect at once."""
        if not any(callable(getattr(plugin, m, None)) for m in ("filter", "score", "post_filter", "bind")):
            raise LabError(
                f"plugin {plugin_name(plugin)} has none of the methods filter, score, post_filter, bind",
                hint="define at least one of them; see `labkit.framework.plugin` for their signatures",
            )
        if getattr(plugin, "handle", None) is None and hasattr(plugin, "handle"):
            plugin.handle = self.handle
        name = plugin_name(plugin)
        names = [plugin_name(p) for p in self.plugins]
        if name in names:
            self.plugins = tuple(plugin if n == name else p for n, p in zip(names, self.plugins, strict=True))
        else:
            self.plugins = (*self.plugins, plugin)

    def remove(self, name: str) -> None:
        """Stop serving the plugin called `name`."""
        self.plugins = tuple(p for p in self.plugins if plugin_name(p) != name)

    def serves(self, verb: str) -> bool:
        """True when some plugin answers `verb` (filter, prioritize, preempt, bind)."""
        return bool(self._with({"prioritize": "score", "preempt": "post_filter"}.get(verb, verb)))

    def _with(self, method: str) -> list[Any]:
        return [p for p in self.plugins if callable(getattr(p, method, None))]

    # --- verbs --------------------------------------------------------------------------------------------

    def answer(self, verb: str, body: wire.Body) -> wire.Chunks:
        """The response body for `verb`. WireError when the request cannot be read."""
        return _VERBS[verb](self, body)

    def filter(self, body: wire.Body) -> wire.Chunks:
        """`/filter`: which nodes pass, and why the others do not."""
        args = wire.decode_filter_args(body)
        record = self._record("filter", args)
        try:
            pod, nodes = self._read(args)
            kept, failed, unresolvable = self._run_filters(pod, nodes)
        except Exception as e:
            return wire.encode_filter_result(error=self._failed(record, e))
        record.pod, record.kept, record.failed = pod.key, len(kept), {**failed, **unresolvable}
        if args.nodes is not None:
            return wire.encode_filter_result(
                nodes=[args.nodes[i] for i in kept], failed=failed, unresolvable=unresolvable
            )
        names = args.node_names or []
        return wire.encode_filter_result(
            node_names=names if len(kept) == len(names) else [names[i] for i in kept],
            failed=failed,
            unresolvable=unresolvable,
        )

    def prioritize(self, body: wire.Body) -> wire.Chunks:
        """`/prioritize`: a score of 0..10 a node, the rounded mean of the Score plugins.

        The protocol has no error member here: a failing plugin is answered as a server error, and
        kube-scheduler then goes on without our scores.
        """
        args = wire.decode_filter_args(body)
        record = self._record("prioritize", args)
        try:
            pod, nodes = self._read(args)
            record.pod = pod.key
            totals = self._run_scores(pod, nodes)
        except Exception as e:
            raise PluginFailure(self._failed(record, e)) from e
        record.scores = dict(zip((n.name for n in nodes), totals, strict=True))
        return wire.encode_host_priorities(record.scores.items())

    def preempt(self, body: wire.Body) -> wire.Chunks:
        """`/preempt`: the candidates that PostFilter plugins leave, always in the meta form."""
        args = wire.decode_preempt_args(body)
        record = self._record("preempt", None, len(args.victims))
        try:
            pod = decode_pod(args.pod)
            record.pod = pod.key
            victims = args.victims
            for plugin in self._with("post_filter"):
                victims = self._run_post_filter(plugin, pod, victims)
        except Exception as e:
            raise PluginFailure(self._failed(record, e)) from e
        record.kept = len(victims)
        return wire.encode_preemption_result(victims)

    def bind(self, body: wire.Body) -> wire.Chunks:
        """`/bind`: the first Bind plugin that does not Skip binds the pod through the cluster client."""
        args = wire.decode_bind_args(body)
        record = self._record("bind", None, 1)
        record.pod = f"{args.pod_namespace}/{args.pod_name}"
        pod = Pod(metadata=ObjectMeta(name=args.pod_name, namespace=args.pod_namespace, uid=args.pod_uid))
        try:
            state = CycleState()
            for plugin in self._with("bind"):
                status = _status(plugin, "bind", plugin.bind(state, pod, args.node))
                if status is not None and status.is_skip:
                    continue
                if status is not None and not status.is_success:
                    record.error = status.message
                return wire.encode_binding_result(record.error)
            raise PluginFailure("no plugin bound the pod: none has a bind method, or all of them skipped")
        except Exception as e:
            return wire.encode_binding_result(self._failed(record, e))

    # --- running plugins ----------------------------------------------------------------------------------

    def _read(self, args: wire.FilterArgs) -> tuple[Pod, Sequence[NodeInfo]]:
        nodes: Sequence[NodeInfo]
        if args.nodes is not None:
            nodes = [ReceivedNode(raw, i) for i, raw in enumerate(args.nodes)]
        elif args.node_names is not None:
            nodes = self._names.all(args.node_names)
        else:
            raise PluginFailure(NO_NODES)
        return decode_pod(args.pod), nodes

    def _run_filters(
        self, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[list[int], dict[str, str], dict[str, str]]:
        state = CycleState()
        kept = list(range(len(nodes)))
        failed: dict[str, str] = {}
        unresolvable: dict[str, str] = {}
        for plugin in self._with("filter"):
            if callable(getattr(plugin, "pre_filter", None)):
                self.handle.use(Snapshot(nodes))
                verdict = _pre_filter(plugin, state, pod, nodes)
                if verdict.skip:
                    continue
                if verdict.rejected is not None:
                    into = _bucket(verdict.rejected, failed, unresolvable)
                    into.update({nodes[i].name: verdict.rejected.message for i in kept})
                    return [], failed, unresolvable
                if verdict.names is not None:
                    for i in kept:
                        if nodes[i].name not in verdict.names:
                            unresolvable[nodes[i].name] = (
                                f"node(s) didn't satisfy plugin {plugin_name(plugin)}"
                            )
                    kept = [i for i in kept if nodes[i].name in verdict.names]
            check = plugin.filter
            statuses = [check(state, pod, nodes[i]) for i in kept]
            if statuses.count(None) == len(statuses):
                continue
            passed: list[int] = []
            for i, status in zip(kept, statuses, strict=True):
                if status is None:
                    passed.append(i)
                    continue
                status = _status(plugin, "filter", status, nodes[i])
                if status.code == Code.SUCCESS:
                    passed.append(i)
                elif status.is_rejected:
                    _bucket(status, failed, unresolvable)[nodes[i].name] = status.message
                else:
                    raise PluginFailure(f'running "{plugin_name(plugin)}" filter plugin: {status.message}')
            kept = passed
        return kept, failed, unresolvable

    def _run_scores(self, pod: Pod, nodes: Sequence[NodeInfo]) -> list[int]:
        state = CycleState()
        totals = [0] * len(nodes)
        counted = 0
        for plugin in self._with("score"):
            if callable(getattr(plugin, "pre_score", None)):
                self.handle.use(Snapshot(nodes))
                status = _status(plugin, "pre_score", plugin.pre_score(state, pod, nodes))
                if status is not None and status.is_skip:
                    continue
                if status is not None and not status.is_success:
                    raise PluginFailure(f'running PreScore plugin "{plugin_name(plugin)}": {status.message}')
            scores = [NodeScore(n.name, _score(plugin, plugin.score(state, pod, n), n)) for n in nodes]
            if callable(getattr(plugin, "normalize_score", None)):
                status = _status(plugin, "normalize_score", plugin.normalize_score(state, pod, scores))
                if status is not None and not status.is_success:
                    raise PluginFailure(
                        f'normalizing scores of plugin "{plugin_name(plugin)}": {status.message}'
                    )
            counted += 1
            for i, s in enumerate(scores):
                if not 0 <= s.score <= 100:
                    raise PluginFailure(
                        f'plugin "{plugin_name(plugin)}" returns an invalid score {s.score} for node {s.name}, '
                        "it should be in the range of 0 to 100 after normalizing"
                    )
                totals[i] += s.score
        return [to_extender_score(t, counted) for t in totals]

    def _run_post_filter(
        self, plugin: Any, pod: Pod, victims: dict[str, wire.NodeVictims]
    ) -> dict[str, wire.NodeVictims]:
        state = CycleState()
        state.write(VICTIMS_KEY, victims)
        statuses = NodeToStatus()
        for name in victims:
            statuses.set(name, Status.unschedulable())
        answer = plugin.post_filter(state, pod, statuses)
        result, status = answer if isinstance(answer, tuple) and len(answer) == 2 else (None, answer)
        status = _status(plugin, "post_filter", status)
        if status is not None and status.code == Code.ERROR:
            raise PluginFailure(f'running PostFilter plugin "{plugin_name(plugin)}": {status.message}')
        if status is not None and status.is_rejected:
            return {}
        if isinstance(result, PostFilterResult) and result.nominated_node_name:
            chosen = result.nominated_node_name
            if chosen not in victims:
                raise PluginFailure(
                    f'PostFilter plugin "{plugin_name(plugin)}" nominated node "{chosen}", which is no candidate'
                )
            return {chosen: victims[chosen]}
        return victims

    # --- records ------------------------------------------------------------------------------------------

    def _record(self, verb: str, args: wire.FilterArgs | None, nodes: int = 0) -> RequestRecord:
        form = "-"
        if args is not None:
            form = (
                "Nodes"
                if args.nodes is not None
                else "NodeNames"
                if args.node_names is not None
                else "neither"
            )
            nodes = len(args.nodes if args.nodes is not None else args.node_names or [])
        self._count += 1
        record = RequestRecord(self._count, verb, "", form, nodes, 0, {}, {}, "")
        self.log.append(record)
        return record

    @staticmethod
    def _failed(record: RequestRecord, e: Exception) -> str:
        if isinstance(e, PluginFailure):
            record.error = str(e)
        else:
            frames = traceback.extract_tb(e.__traceback__)
            where = f" ({frames[-1].name}, line {frames[-1].lineno})" if frames else ""
            record.error = f"{type(e).__name__}: {e}{where}"
            record.traceback = traceback.format_exc()
        return record.error


def to_extender_score(total: int, plugins: int) -> int:
    """The mean of `plugins` scores of 0..100 as 0..10, halves rounded up; 0 without plugins."""
    if plugins == 0:
        return 0
    return (total * 2 * MAX_EXTENDER_PRIORITY + 100 * plugins) // (2 * 100 * plugins)


def load_plugin(reference: str) -> object:
    """The plugin object behind `module:Class`. LabError that says what is wrong with the reference."""
    module_name, _, attribute = reference.partition(":")
    if not module_name or not attribute:
        raise LabError(
            f"--plugin {reference!r} is not of the form module:Class", hint="for example licence:LicenceAware"
        )
    try:
        module = importlib.import_module(module_name)
    except Exception as e:
        raise LabError(
            f"--plugin {reference}: cannot import {module_name!r}: {type(e).__name__}: {e}",
            hint="run from the folder that holds the module, or put that folder on PYTHONPATH",
        ) from e
    cls = getattr(module, attribute, None)
    if cls is None:
        raise LabError(f"--plugin {reference}: module {module_name!r} has no {attribute!r}")
    try:
        return cls() if isinstance(cls, type) else cls
    except Exception as e:
        raise LabError(f"--plugin {reference}: {attribute}() raised {type(e).__name__}: {e}") from e


class _PreFilterVerdict:
    __slots__ = ("names", "rejected", "skip")

    def __init__(self) -> None:
        self.names: set[str] | None = None
        self.rejected: Status | None = None
        self.skip = False


def _pre_filter(plugin: Any, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> _PreFilterVerdict:
    answer = plugin.pre_filter(state, pod, nodes)
    verdict = _PreFilterVerdict()
    parts = answer if isinstance(answer, tuple) else (answer,)
    for part in parts:
        if isinstance(part, PreFilterResult):
            verdict.names = part.node_names
            continue
        status = _status(plugin, "pre_filter", part)
        if status is None or status.is_success:
            continue
        if status.is_skip:
            verdict.skip = True
        elif status.is_rejected:
            verdict.rejected = status
        else:
            raise PluginFailure(f'running PreFilter plugin "{plugin_name(plugin)}": {status.message}')
    return verdict


def _bucket(status: Status, failed: dict[str, str], unresolvable: dict[str, str]) -> dict[str, str]:
    return unresolvable if status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE else failed


def _status(plugin: object, method: str, value: Any, node: NodeInfo | None = None) -> Any:
    if value is None or isinstance(value, Status):
        return value
    on = f" for node {node.name}" if node is not None else ""
    raise PluginFailure(
        f"{plugin_name(plugin)}.{method} returned {value!r} ({type(value).__name__}){on}; "
        "return None for success or a Status, for example Status.unschedulable('why')"
    )


def _score(plugin: object, value: Any, node: NodeInfo) -> int:
    score, status = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    status = _status(plugin, "score", status, node)
    if status is not None and not status.is_success:
        raise PluginFailure(f'plugin "{plugin_name(plugin)}" failed with: {status.message}')
    if type(score) is not int:
        raise PluginFailure(
            f"{plugin_name(plugin)}.score returned {score!r} ({type(score).__name__}) for node {node.name}; "
            "return an int from 0 to 100"
        )
    return score


_VERBS: dict[str, Callable[[ExtenderService, wire.Body], wire.Chunks]] = {
    "filter": ExtenderService.filter,
    "prioritize": ExtenderService.prioritize,
    "preempt": ExtenderService.preempt,
    "bind": ExtenderService.bind,
}
VERBS = tuple(_VERBS)
