"""Our engine's side of the protocol: calls HTTP extenders as kube-scheduler does (spec 04)."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from labkit.engine.extender_api import FilterResult
from labkit.engine.trace import ExtenderCall
from labkit.extender.go_json import GoDecodeError, decode, expect_field, expect_object, member
from labkit.extender.transport import ExtenderCallError, Transport
from labkit.framework.node_info import NodeInfo
from labkit.framework.snapshot import Snapshot
from labkit.i18n import t
from labkit.objects.meta import KubeObject
from labkit.objects.node import Node
from labkit.objects.pod import Container, Pod
from labkit.plugins._preemption import Candidate

#: Pods whose attempts may still be binding.
_KEPT_TRACES = 1000


def wire_object(obj: KubeObject) -> dict[str, Any]:
    """An object as it goes over the wire: what the API server sent, without kind, apiVersion and managedFields."""
    raw: dict[str, Any] = obj.__dict__.get("raw") or msgspec.to_builtins(obj)
    found = {k: v for k, v in raw.items() if k not in ("kind", "apiVersion")}
    if "managedFields" in (found.get("metadata") or {}):
        found["metadata"] = {k: v for k, v in found["metadata"].items() if k != "managedFields"}
    return found


class HTTPExtender:
    """One configured extender (`labkit.config.ExtenderConfig`). `calls` keeps the last exchanges."""

    def __init__(self, config: Any, *, keep: int = 1000) -> None:
        self.config = config
        self.name = str(config.url_prefix)
        self.ignorable = bool(config.ignorable)
        self.weight = int(config.weight)
        self._transport = Transport(
            config.url_prefix,
            float(config.http_timeout),
            enable_https=config.enable_https,
            tls=config.tls_config,
        )
        self._managed = frozenset(
            r.name if hasattr(r, "name") else r[0] for r in config.managed_resources or ()
        )
        self.calls: deque[ExtenderCall] = deque(maxlen=keep)
        self._traces: OrderedDict[str, list[ExtenderCall]] = OrderedDict()

    def record_into(self, pod: str, calls: list[ExtenderCall]) -> None:
        """Append the calls for `pod` (namespace/name) to `calls` as well, until told otherwise."""
        self._traces[pod] = calls
        self._traces.move_to_end(pod)
        while len(self._traces) > _KEPT_TRACES:
            self._traces.popitem(last=False)

    @property
    def is_filter(self) -> bool:
        """It has a filter verb."""
        return bool(self.config.filter_verb)

    @property
    def is_prioritizer(self) -> bool:
        """It has a prioritize verb."""
        return bool(self.config.prioritize_verb)

    @property
    def is_binder(self) -> bool:
        """It has a bind verb."""
        return bool(self.config.bind_verb)

    @property
    def supports_preemption(self) -> bool:
        """It has a preempt verb."""
        return bool(self.config.preempt_verb)

    def is_interested(self, pod: Pod) -> bool:
        """No managed resources, or a container names one in requests or limits."""
        if not self._managed:
            return True
        return any(map(self._names_managed, (*pod.spec.containers, *pod.spec.init_containers)))

    def _names_managed(self, container: Container) -> bool:
        names = {*container.resources.requests, *container.resources.limits}
        return not self._managed.isdisjoint(names)

    # --- verbs ------------------------------------------------------------------------------------------------

    def filter(self, pod: Pod, nodes: Sequence[NodeInfo]) -> FilterResult:
        """Which of `nodes` are left. Raises with kube-scheduler's text."""
        call = self._begin(pod, self.config.filter_verb, len(nodes))
        try:
            answer = expect_object(
                self._ask(self.config.filter_verb, self._args(pod, nodes)), "v1.ExtenderFilterResult"
            )
            error = member(answer, "Error")
            if error:
                raise ExtenderCallError(str(error))
            result = self._filter_result(answer, nodes)
        except (ExtenderCallError, GoDecodeError) as e:
            raise self._end(call, e) from None
        call.kept = len(result.nodes)
        call.failed = {**result.failed, **result.failed_and_unresolvable}
        if not self.config.node_cache_capable and any(n.pods for n in nodes):
            call.warning = t(
                "scored the returned nodes without their pods, as if they were empty; "
                "set nodeCacheCapable: true to send names",
                "返回的节点不带 Pod，按空节点打分；设置 nodeCacheCapable: true 即可改为发送名字",
            )
        self._end(call)
        return result

    def _filter_result(self, answer: dict[str, Any], nodes: Sequence[NodeInfo]) -> FilterResult:
        failed = _messages(answer, "FailedNodes")
        unresolvable = _messages(answer, "FailedAndUnresolvableNodes")
        names, node_list = member(answer, "NodeNames"), member(answer, "Nodes")
        if self.config.node_cache_capable and names is not None:
            expect_field(names, list, "ExtenderFilterResult.NodeNames", "[]string")
            known = {n.name: n for n in nodes}
            for name in names:
                if name not in known:
                    raise ExtenderCallError(
                        f'extender "{self.name}" claims a filtered node "{name}" which is not found in the input node list'
                    )
            return FilterResult([known[name] for name in names], failed, unresolvable)
        if node_list is None:
            return FilterResult([], failed, unresolvable)
        items = member(expect_object(node_list, "v1.NodeList"), "items") or []
        # Fresh infos without pods: what the reference scores from here on.
        return FilterResult([_fresh(item, nodes) for item in items], failed, unresolvable)

    def prioritize(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Iterable[tuple[str, int]]:
        """(host, score) pairs, neither clamped nor weighted. Any fault of the answer raises."""
        call = self._begin(pod, self.config.prioritize_verb, len(nodes))
        try:
            answer = self._ask(self.config.prioritize_verb, self._args(pod, nodes))
            if answer is not None and not isinstance(answer, list):
                raise GoDecodeError("json: cannot unmarshal object into Go value of type v1.HostPriorityList")
            found: list[tuple[str, int]] = []
            for entry in answer or []:
                fields = expect_object(entry, "v1.HostPriority")
                score = member(fields, "Score")
                expect_field(0 if score is None else score, int, "HostPriority.Score", "int64")
                found.append((str(member(fields, "Host") or ""), int(score or 0)))
        except (ExtenderCallError, GoDecodeError) as e:
            raise self._end(call, e) from None
        call.scores = dict(found)
        self._end(call)
        return found

    def bind(self, pod: Pod, node_name: str) -> None:
        """Let the extender bind. Its word is taken for it."""
        call = self._begin(pod, self.config.bind_verb, 1)
        body = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node_name}
        try:
            answer = expect_object(self._ask(self.config.bind_verb, body), "v1.ExtenderBindingResult")
            error = member(answer, "Error")
            if error:
                raise ExtenderCallError(str(error))
        except (ExtenderCallError, GoDecodeError) as e:
            raise self._end(call, e) from None
        self._end(call)

    def process_preemption(
        self, pod: Pod, candidates: list[Candidate], snapshot: Snapshot
    ) -> list[Candidate]:
        """What the extender leaves of the candidates."""
        call = self._begin(pod, self.config.preempt_verb, len(candidates))
        try:
            answer = self._ask(self.config.preempt_verb, self._victims(pod, candidates))
            fields = expect_object(answer, "v1.ExtenderPreemptionResult")
            found = [
                self._resolved(node, victims, snapshot)
                for node, victims in (member(fields, "NodeNameToMetaVictims") or {}).items()
            ]
        except (ExtenderCallError, GoDecodeError) as e:
            raise self._end(call, e) from None
        call.kept = len(found)
        self._end(call)
        return found

    def _resolved(self, node: str, victims: Any, snapshot: Snapshot) -> Candidate:
        info = snapshot.by_name.get(node)
        if info is None:
            raise ExtenderCallError(f'nodeinfo not found for node name "{node}"')
        fields = expect_object(victims, "v1.MetaVictims")
        known = {i.pod.uid: i.pod for i in info.pods}
        pods: list[Pod] = []
        for entry in member(fields, "Pods") or []:
            uid = str(member(expect_object(entry, "v1.MetaPod"), "UID") or "")
            if uid not in known:
                raise ExtenderCallError(
                    f"extender: {self.name} claims to preempt pod (UID: &{{{uid}}}) on node: {node}, "
                    "but the pod is not found on that node"
                )
            pods.append(known[uid])
        return Candidate(node, pods, int(member(fields, "NumPDBViolations") or 0))

    # --- bodies -----------------------------------------------------------------------------------------------

    def _args(self, pod: Pod, nodes: Sequence[NodeInfo]) -> dict[str, Any]:
        if self.config.node_cache_capable:
            return {"Pod": wire_object(pod), "Nodes": None, "NodeNames": [n.name for n in nodes]}
        items = [wire_object(n.node) for n in nodes]
        return {"Pod": wire_object(pod), "Nodes": {"metadata": {}, "items": items}, "NodeNames": None}

    def _victims(self, pod: Pod, candidates: Sequence[Candidate]) -> dict[str, Any]:
        meta = self.config.node_cache_capable
        per_node = {
            c.node: {
                "Pods": [{"UID": v.uid} if meta else wire_object(v) for v in c.victims],
                "NumPDBViolations": c.violations,
            }
            for c in candidates
        }
        return {
            "Pod": wire_object(pod),
            "NodeNameToVictims": None if meta else per_node,
            "NodeNameToMetaVictims": per_node if meta else None,
        }

    def _ask(self, verb: str, body: dict[str, Any]) -> Any:
        return decode(self._transport.post(verb, msgspec.json.encode(body)))

    def _begin(self, pod: Pod, verb: str, nodes: int) -> ExtenderCall:
        call = ExtenderCall(self.name, verb, nodes, None, "", time.perf_counter())
        self.calls.append(call)
        if (calls := self._traces.get(pod.key)) is not None:
            calls.append(call)
        return call

    @staticmethod
    def _end(call: ExtenderCall, error: Exception | None = None) -> Exception:
        call.milliseconds = 1000 * (time.perf_counter() - call.milliseconds)
        call.error = str(error) if error is not None else ""
        return error if error is not None else ExtenderCallError("")


def build_extenders(config: Any) -> list[HTTPExtender]:
    """The configured extenders, ignorable ones behind all others. LabError for TLS files that cannot be used."""
    made = [HTTPExtender(e) for e in config.extenders]
    return [e for e in made if not e.ignorable] + [e for e in made if e.ignorable]


def _messages(answer: dict[str, Any], name: str) -> dict[str, str]:
    value = member(answer, name)
    if value is None:
        return {}
    expect_field(value, dict, f"ExtenderFilterResult.{name}", "v1.FailedNodesMap")
    return {str(k): str(v) for k, v in value.items()}


def _fresh(item: Any, nodes: Sequence[NodeInfo]) -> NodeInfo:
    raw = expect_object(item, "v1.Node")
    node = msgspec.convert(raw, Node)
    node.__dict__["raw"] = raw
    info = NodeInfo(node)
    info.image_states = next((n.image_states for n in nodes if n.name == node.name), {})
    return info
