"""One profile's plugins and how they are run: every extension point, with its exact texts (spec 01 §4).

`Framework` is also the `Handle` that its plugins see. A `trace` argument, where given, is told what happened.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from labkit.engine.booking import BookingPoints
from labkit.engine.calls import RAISED, call_pair, call_status, failure, quote, raised, wrong_type
from labkit.engine.scoring import run_pre_score, run_score
from labkit.engine.services import Services
from labkit.engine.shapes import quick
from labkit.framework.clock import Clock
from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import NodeInfo, PodInfo, pod_info
from labkit.framework.plugin import EXTENSION_POINTS, plugin_name
from labkit.framework.results import (
    NodeToStatus,
    PostFilterResult,
    PreFilterResult,
)
from labkit.framework.snapshot import Snapshot
from labkit.framework.status import Code, Status, is_success
from labkit.objects.pod import Pod

if TYPE_CHECKING:
    from labkit.engine.rows import Rows
    from labkit.engine.trace import Trace
    from labkit.engine.verdicts import VerdictRow
    from labkit.framework.handle import NodeNotes, ObjectLister

Points = dict[str, list[tuple[Any, int]]]


class Framework(BookingPoints):
    """Plugins of one profile by extension point, in call order; `points` maps a point to (plugin, weight)."""

    def __init__(
        self,
        profile_name: str,
        points: Points,
        services: Services,
        *,
        percentage_of_nodes_to_score: int | None = None,
    ) -> None:
        self.profile_name = profile_name
        self.services = services
        self.percentage_of_nodes_to_score = percentage_of_nodes_to_score
        self._points: Points = {}
        self.set_points(points)

    def set_points(self, points: Points) -> None:
        """Replace all plugins at once."""
        self._points = {point: list(points.get(point, [])) for point in EXTENSION_POINTS}
        self.forget_answers()

    def forget_answers(self) -> None:
        """Plugins changed: what is kept of their answers is void."""
        self._rows: Rows | None = None
        self._quick: dict[tuple[int, str], Callable[..., Any] | None] = {}
        self._named: dict[tuple[str, str], list[tuple[str, Any]]] = {}

    # --- who is there -------------------------------------------------------------------------------------

    def plugins(self, point: str) -> list[Any]:
        """Plugin objects of an extension point, in call order."""
        return [p for p, _ in self._points[point]]

    def weights(self) -> dict[str, int]:
        """Score plugin name -> weight."""
        return {plugin_name(p): w for p, w in self._points["score"]}

    def has(self, point: str) -> bool:
        """True when some plugin serves `point`."""
        return bool(self._points[point])

    def all_plugins(self) -> list[Any]:
        """Each plugin object once, in order of first appearance."""
        seen: dict[int, Any] = {}
        for entries in self._points.values():
            for p, _ in entries:
                seen.setdefault(id(p), p)
        return list(seen.values())

    def replace(self, plugin: Any, *, weight: int | None = None) -> None:
        """Run `plugin` from now on: in the place of the one with its name, and at every further point it serves."""
        name = plugin_name(plugin)
        if getattr(plugin, "handle", None) is None and hasattr(plugin, "handle"):
            plugin.handle = self
        for point, method in EXTENSION_POINTS.items():
            entries = self._points[point]
            at = [i for i, (p, _) in enumerate(entries) if plugin_name(p) == name]
            if callable(getattr(plugin, method, None)):
                if at:
                    kept = entries[at[0]][1]
                    entries[at[0]] = (plugin, kept if weight is None else weight)
                elif point == "queue_sort":
                    entries[:] = [(plugin, 0)]
                elif point == "bind":
                    entries.insert(0, (plugin, 0))
                else:
                    entries.append((plugin, weight or 1))
            elif at:
                del entries[at[0]]
        self.forget_answers()

    def borrow(self, other: Framework) -> None:
        """Run what `other` runs now: its switches, weights and learners' own plugins, not its in-tree objects."""
        own = {plugin_name(p): p for p in self.all_plugins()}
        mine: dict[int, Any] = {}
        for theirs in other.all_plugins():
            made: Any = own.get(plugin_name(theirs))
            if type(made) is not type(theirs):
                made = theirs
            elif getattr(made, "args", None) != getattr(theirs, "args", None):
                made = type(made)(theirs.args, self)
            mine[id(theirs)] = made
        self._points = {
            point: [(mine[id(p)], w) for p, w in entries] for point, entries in other._points.items()
        }
        self.forget_answers()

    def remove(self, name: str, points: Iterable[str] | None = None) -> None:
        """Take a plugin out, everywhere or at the given extension points."""
        for point in points or EXTENSION_POINTS:
            self._points[point] = [(p, w) for p, w in self._points[point] if plugin_name(p) != name]
        self.forget_answers()

    def set_weight(self, name: str, weight: int) -> None:
        """Change a score plugin's weight. KeyError when there is no such score plugin."""
        entries = self._points["score"]
        for i, (p, _) in enumerate(entries):
            if plugin_name(p) == name:
                entries[i] = (p, weight)
                return
        raise KeyError(f"no score plugin called {name}")

    # --- quick ways for large clusters --------------------------------------------------------------------

    @property
    def keeps_answers(self) -> bool:
        """The cluster is large: plugins' answers are kept from cycle to cycle (labkit.engine.rows)."""
        return self.services.snapshot.large

    @property
    def rows(self) -> Rows:
        """What is kept."""
        if self._rows is None:
            from labkit.engine.rows import Rows

            self._rows = Rows()
        return self._rows

    def row_with_nominated(self, who: str, shape: Hashable, pod: Pod) -> VerdictRow:
        """Verdicts about nodes with the pods that are nominated to them, for pods of a shape and `pod`'s priority."""
        from labkit.engine.verdicts import VerdictRow

        nominator, snapshot = self.services.nominator, self.snapshot
        key = (who, "with nominated", shape, pod.priority)
        row = self.rows.row(key, lambda: VerdictRow(nominator), snapshot)
        own = snapshot.by_name.get(nominator.node_of(pod)) if nominator is not None else None
        if own is not None:
            row.ask_for_one(own)
        return row

    def counts_pods(self, state: CycleState) -> bool:
        """Some PreFilter plugin of this attempt wants to hear of pods that are added or removed on trial."""
        skip = state.skip_filter_plugins
        return any(
            name not in skip
            for method in ("add_pod", "remove_pod")
            for name, _ in self._serving("pre_filter", method)
        )

    def quick(self, plugin: Any, method: str) -> Callable[..., Any] | None:
        """The plugin's optional quick `method` (labkit.engine.shapes), or None."""
        key = (id(plugin), method)
        try:
            return self._quick[key]
        except KeyError:
            found = self._quick[key] = quick(plugin, method)
            return found

    def _serving(self, point: str, method: str) -> list[tuple[str, Any]]:
        """(name, plugin) of the plugins at `point` that have `method`."""
        found = self._named.get((point, method))
        if found is None:
            found = [(plugin_name(p), p) for p in self.plugins(point) if hasattr(p, method)]
            self._named[point, method] = found
        return found

    # --- Handle -------------------------------------------------------------------------------------------

    @property
    def clock(self) -> Clock:
        """The scheduler's clock."""
        return self.services.clock

    @property
    def snapshot(self) -> Snapshot:
        """The current cycle's snapshot."""
        return self.services.snapshot

    @property
    def objects(self) -> ObjectLister:
        """Cached cluster objects."""
        return self.services.objects

    @property
    def client(self) -> Any:
        """The cluster client, or None."""
        return self.services.client

    @property
    def gates(self) -> Mapping[str, bool]:
        """Feature gates."""
        return self.services.gates

    @property
    def extenders(self) -> list[Any]:
        """Configured extenders, non-ignorable first."""
        return self.services.extenders

    def nominated_pods(self, node_name: str) -> list[Pod]:
        """Pods nominated to a node, in order of nomination."""
        nominator = self.services.nominator
        return nominator.pods_for(node_name) if nominator is not None else []

    def nominated_nodes(self) -> list[str]:
        """Nodes that pods are nominated to."""
        nominator = self.services.nominator
        return nominator.nodes() if nominator is not None else []

    @property
    def some_nominated(self) -> bool:
        """Some pod is nominated to some node."""
        nominator = self.services.nominator
        return nominator is not None and not nominator.empty

    def rivals_of(self, pod: Pod, node_name: str) -> list[Pod]:
        """Pods nominated to a node that `pod` must leave room for: of equal or higher priority."""
        nominated = self.nominated_pods(node_name)
        return [p for p in nominated if p.priority >= pod.priority and p.uid != pod.uid]

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Put `pod` in the nominator; an empty node name removes it."""
        nominator = self.services.nominator
        if nominator is None:
            return
        if node_name:
            nominator.add(pod, node_name)
        else:
            nominator.delete(pod)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move pods to the active queue at once."""
        self.services.activate(pods)

    def waiting_pods(self) -> list[Any]:
        """Pods held by Permit."""
        return self.services.waiting.list() if self.services.waiting is not None else []

    def get_waiting_pod(self, uid: str) -> Any | None:
        """The waiting pod with this UID."""
        return self.services.waiting.get(uid) if self.services.waiting is not None else None

    def reject_waiting_pod(self, uid: str, message: str = "removed") -> bool:
        """Reject a waiting pod; False when there is none."""
        waiting = self.get_waiting_pod(uid)
        if waiting is None:
            return False
        waiting.reject("", message)
        return True

    def preempt_in_memory(self, pod: Pod, plugin: str) -> bool:
        """Cancel a victim before its binding; False when it must be deleted through the API."""
        return self.services.cancel_in_memory(pod, plugin)

    def record_event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        """Write an event about `pod`."""
        self.services.record_event(pod, type_, reason, action, note)

    def total_nodes(self) -> int:
        """Nodes in the snapshot."""
        return len(self.services.snapshot.nodes)

    def dry_run_status_nodes(self, statuses: NodeToStatus) -> list[NodeInfo]:
        """Snapshot nodes whose effective status is Unschedulable."""
        return statuses.nodes_for_code(self.snapshot, Code.UNSCHEDULABLE)

    def dry_run_notes(self, plugin: str, state: CycleState, pod: Pod, about: Hashable) -> NodeNotes | None:
        """What `plugin` noted of dry runs for pods like this one; None in a small cluster, and for pods whose
        filters look at more than one node."""
        if not self.keeps_answers or self.counts_pods(state):
            return None
        shape: list[Hashable] = [about]
        for name, one, _ in self.active_filters(state):
            sign = self.quick(one, "sign_pod")
            of_pod = sign(pod) if sign is not None else None
            if of_pod is None:
                return None
            shape.append((name, of_pod))
        return self.row_with_nominated(plugin, tuple(shape), pod)

    # --- PreFilter and its extensions ---------------------------------------------------------------------

    def run_pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], trace: Trace | None = None
    ) -> tuple[PreFilterResult, Status | None, set[str]]:
        """(allowed nodes, overall status, plugins that narrowed the nodes)."""
        merged = PreFilterResult()
        restricting: set[str] = set()
        skip: set[str] = set()
        remembered: Status | None = None
        state.skip_filter_plugins = skip
        for plugin in self.plugins("pre_filter"):
            name = plugin_name(plugin)
            result, status = call_pair(
                plugin,
                "pre_filter",
                PreFilterResult,
                state,
                pod,
                nodes,
                expected="None, a Status, a PreFilterResult, or (PreFilterResult, Status)",
            )
            if trace is not None:
                trace.pre_filter(name, status, result)
            if status is not None and status.code == Code.SKIP:
                skip.add(name)
                continue
            if status is not None and status.code != Code.SUCCESS:
                if status.is_rejected and status.code != Code.PENDING:
                    status = status.with_plugin(name)
                    if status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                        return PreFilterResult(), status, set()
                    remembered = status
                    continue
                return PreFilterResult(), failure(f"running PreFilter plugin {quote(name)}: ", status), set()
            if result is not None and result.node_names is not None:
                restricting.add(name)
                merged = merged.merge(result)
                if not merged.node_names:
                    text = f"node(s) didn't satisfy plugin {name}"
                    if len(restricting) > 1:
                        text = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(restricting))}] simultaneously"
                    return merged, Status.unresolvable(text), restricting
        return merged, remembered, restricting

    def run_pre_filter_add_pod(
        self, state: CycleState, pod: Pod, added: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Tell PreFilter plugins that `added` is (hypothetically) on `node`."""
        return self._extension("add_pod", "AddPod", state, pod, added, node)

    def run_pre_filter_remove_pod(
        self, state: CycleState, pod: Pod, removed: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Tell PreFilter plugins that `removed` is (hypothetically) gone from `node`."""
        return self._extension("remove_pod", "RemovePod", state, pod, removed, node)

    def _extension(
        self, method: str, label: str, state: CycleState, pod: Pod, other: PodInfo, node: NodeInfo
    ) -> Status | None:
        skip = state.skip_filter_plugins
        for name, plugin in self._serving("pre_filter", method):
            if name in skip:
                continue
            status = call_status(plugin, method, state, pod, other, node)
            if not is_success(status):
                return failure(f"running {label} on PreFilter plugin {quote(name)}: ", status)
        return None

    # --- Filter -------------------------------------------------------------------------------------------

    def active_filters(self, state: CycleState) -> list[tuple[str, Any, Any]]:
        """(name, plugin, method) of the Filter plugins that this pod's PreFilter did not skip."""
        skip = state.skip_filter_plugins
        serving = self._serving("filter", "filter")
        return [(name, plugin, plugin.filter) for name, plugin in serving if name not in skip]

    def observe_search(
        self, search: Callable[[], tuple[list[NodeInfo], Status | None]]
    ) -> tuple[list[NodeInfo], Status | None]:
        """Runs the search over all nodes; metrics measure here."""
        return search()

    def run_filter(
        self, state: CycleState, pod: Pod, node: NodeInfo, filters: list[tuple[str, Any, Any]] | None = None
    ) -> Status | None:
        """The first plugin that does not succeed decides."""
        for name, plugin, check in self.active_filters(state) if filters is None else filters:
            try:
                status = check(state, pod, node)
            except RAISED as e:
                status = raised(plugin, "filter", e, node.name)
            if status is None:
                continue
            if not isinstance(status, Status):
                status = wrong_type(
                    plugin,
                    "filter",
                    status,
                    "None for success, or a Status such as Status.unschedulable('why')",
                    node.name,
                )
            if status.code == Code.SUCCESS:
                continue
            if status.is_rejected:
                return status if status.plugin == name else status.with_plugin(name)
            return failure(f"running {quote(name)} filter plugin: ", status).with_plugin(name)
        return None

    def run_filter_with_nominated_pods(
        self, state: CycleState, pod: Pod, node: NodeInfo, filters: list[tuple[str, Any, Any]] | None = None
    ) -> Status | None:
        """Twice where pods of equal or higher priority are nominated to the node: with them, and without."""
        rivals = self.rivals_of(pod, node.name)
        if rivals:
            trial, trial_node = state.clone(), node.clone()
            for rival in rivals:
                info = pod_info(rival)
                trial_node.add_pod(info)
                status = self.run_pre_filter_add_pod(trial, pod, info, trial_node)
                if not is_success(status):
                    return status
            status = self.run_filter(trial, pod, trial_node, filters)
            if status is not None:
                return status
        return self.run_filter(state, pod, node, filters)

    def run_each_filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> dict[str, Status | None]:
        """Every active Filter plugin alone, nominated pods left out of account; for traces."""
        found: dict[str, Status | None] = {}
        for name, plugin, _ in self.active_filters(state):
            found[name] = call_status(plugin, "filter", state, pod, node, node=node.name)
        return found

    # --- PostFilter ---------------------------------------------------------------------------------------

    def run_post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Until one succeeds or gives up for good; otherwise all reasons together."""
        reasons: list[str] = []
        remembered: PostFilterResult | None = None
        for plugin in self.plugins("post_filter"):
            result, status = call_pair(
                plugin,
                "post_filter",
                PostFilterResult,
                state,
                pod,
                statuses,
                expected="a Status, or (PostFilterResult, Status)",
            )
            status = status or Status.success()
            if status.code in (Code.SUCCESS, Code.UNSCHEDULABLE_AND_UNRESOLVABLE):
                return result, status
            if not status.is_rejected:
                return None, Status.as_error_of(
                    status.error or status.message, plugin=plugin_name(plugin), traceback=status.traceback
                )
            reasons.extend(status.reasons)
            if result is not None and result.override:
                remembered = result
        return remembered, Status(Code.UNSCHEDULABLE, *reasons)

    # --- PreScore, Score ----------------------------------------------------------------------------------

    def run_pre_score(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], trace: Trace | None = None
    ) -> Status | None:
        """None, or the error that ends the attempt; plugins that skip are left out of Score."""
        return run_pre_score(self.plugins("pre_score"), state, pod, nodes, trace)

    def run_score(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], trace: Trace | None = None
    ) -> tuple[list[int], Status | None]:
        """(weighted total per node in the order of `nodes`, None), or ([], the error)."""
        active = [
            (name, p, w)
            for p, w in self._points["score"]
            if (name := plugin_name(p)) not in state.skip_score_plugins
        ]
        if self.keeps_answers:
            from labkit.engine.batch_scoring import run_score_batch
            from labkit.engine.rows import NotKept

            try:
                return run_score_batch(self, active, state, pod, nodes, trace), None
            except NotKept:
                pass
        return run_score(active, state, pod, nodes, trace)
