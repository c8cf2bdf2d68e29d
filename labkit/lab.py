"""The notebook's facade: a cluster, a scheduler and a clock in one object.

    lab = Lab("three-zones")
    lab.apply("...Pod YAML...")
    trace = lab.schedule_one()
    lab.advance("10m")
    lab.what_if(config="...")

The cluster is embedded and time is virtual unless `lab.connect` says otherwise.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from labkit.cluster.client import StoreClient
from labkit.cluster.controllers.background import background
from labkit.cluster.store import Store
from labkit.cluster.store_types import COSCHEDULING_POD_GROUP
from labkit.config import FeatureGates, SchedulerConfig, load_config
from labkit.engine.queue import QueueView
from labkit.engine.scheduler import Scheduler
from labkit.engine.trace import Trace
from labkit.errors import InputError, LabError
from labkit.framework.clock import VirtualClock
from labkit.i18n import t
from labkit.objects.codec import Document
from labkit.objects.meta import RawObject
from labkit.plugin_switches import PluginSwitches
from labkit.progress import progress
from labkit.reading import parse_duration, read_objects

if TYPE_CHECKING:
    from labkit.cluster.kubelet import Kubelets
    from labkit.engine.metrics import Metrics
    from labkit.what_if import WhatIf

__all__ = ["Lab", "parse_duration", "read_objects"]


class Lab:
    """An embedded cluster with its scheduler. `cluster`: see `read_objects`; None starts empty.

    `config` is a KubeSchedulerConfiguration (YAML or dict), `plugins` are extra plugin classes or objects, `gates`
    are feature gates that differ from kube-scheduler's defaults, such as `{"GenericWorkload": True}`.
    With `controllers` workloads make pods, nodes have kubelets (a pod runs a second after it was placed) that can be
    stopped, and what loses its owner or its node goes.
    Everything is deterministic: the same calls with the same `seed` give the same decisions.
    """

    def __init__(
        self,
        cluster: Any = None,
        *,
        config: Any = None,
        plugins: Iterable[Any] = (),
        seed: int = 0,
        trace: str = "on",
        gates: Mapping[str, bool] | None = None,
        controllers: bool = False,
    ) -> None:
        self._start = (cluster, config, list(plugins), seed, trace, FeatureGates(gates))
        self._controllers = controllers
        self._counts = False
        self._log: list[Callable[[], Any]] = []
        self._setup()

    @property
    def given_plugins(self) -> list[Any]:
        """The plugins with which the lab was made: classes and objects."""
        return list(self._start[2])

    def _setup(self) -> None:
        cluster, config, plugins, seed, trace, gates = self._start
        self.clock = VirtualClock()
        self.store = Store(self.clock, seed=seed, pod_groups=gates.enabled("GenericWorkload"))
        self.client = StoreClient(self.store, field_manager="labkit")
        self.background = background(self.store, self.clock, controllers=self._controllers)
        self.config = config
        loaded = load_config(config, gates=gates)
        self.scheduler = Scheduler(
            StoreClient(self.store, field_manager="kube-scheduler"),
            loaded,
            extenders=_extenders(loaded),
            clock=self.clock,
            plugins=plugins,
            gates=gates,
            seed=seed,
            trace=trace,
            metrics=_new_metrics() if self._counts else None,
        )
        self.scheduler.load()
        self.store.subscribe(lambda _, old, new: self.scheduler.notify(old, new))
        self.plugins = PluginSwitches(self)
        if cluster is not None:
            self._apply(cluster)

    def _do(self, action: Callable[[], Any]) -> Any:
        at = len(self._log)
        self._log.append(action)
        try:
            return action()
        except Exception:
            # It fails again when `rewind` repeats it, and leaves again what it had done until then.
            self._log[at] = lambda: _failing(action)
            raise

    # --- the cluster ----------------------------------------------------------------------------------------

    def apply(self, source: Any) -> list[str]:
        """Create or change objects; returns `Kind namespace/name created|changed|unchanged` lines.

        InputError names file, document, object and field of what the API refuses.
        """
        frozen = copy.deepcopy(source) if isinstance(source, (dict, list)) else source
        found: list[str] = self._do(lambda: self._apply(frozen))
        return found

    def _apply(self, source: Any) -> list[str]:
        lines = [self._apply_one(document) for document in read_objects(source)]
        self._settle()
        return lines

    def _settle(self) -> None:
        self.background.step()
        self.scheduler.pump()

    def _apply_one(self, document: Document) -> str:
        raw = copy.deepcopy(document.raw)
        kind = str(raw.get("kind") or "")
        meta = raw.setdefault("metadata", {}) if isinstance(raw.get("metadata", {}), dict) else {}
        raw.setdefault("apiVersion", "v1")
        if kind == "Pod":
            meta.setdefault("namespace", "default")
        self._ensure_namespace(meta.get("namespace"))
        try:
            kind = self._kind(raw)
            known = self._find(kind, str(meta.get("name", "")), meta.get("namespace"))
            # A dump of another cluster (`kubectl get -o yaml`) carries that cluster's version.
            meta.pop("resourceVersion", None)
            if known is None:
                created = self.client.create(raw)
                word = "created"
                status = raw.get("status")
                # Nodes and budgets keep the status that they are created with.
                if isinstance(status, dict) and created.get("status") != status:
                    self._set_status(created, status)
            else:
                changed = self.client.patch(
                    kind, known["metadata"]["name"], meta.get("namespace"), raw, "merge"
                )
                same = changed["metadata"]["resourceVersion"] == known["metadata"]["resourceVersion"]
                word = "unchanged" if same else "changed"
                if isinstance(raw.get("status"), dict):
                    self._set_status(changed, raw["status"])
        except Exception as e:
            if not hasattr(e, "code"):
                raise
            raise InputError(
                str(getattr(e, "message", e)),
                file=document.source,
                document=document.number,
                object=document.label,
            ) from e
        return f"{document.label} {word}"

    @staticmethod
    def _kind(raw: RawObject) -> str:
        """The name under which the store finds the kind: two groups have a PodGroup."""
        kind, version = str(raw.get("kind") or ""), str(raw.get("apiVersion") or "")
        return COSCHEDULING_POD_GROUP if kind == "PodGroup" and "x-k8s.io" in version else kind

    def _find(self, kind: str, name: str, namespace: str | None) -> RawObject | None:
        if not name:
            return None
        try:
            return self.client.get(kind, name, namespace)
        except Exception as e:
            if getattr(e, "code", None) == 404:
                return None
            raise

    def _ensure_namespace(self, namespace: str | None) -> None:
        if namespace and self._find("Namespace", namespace, None) is None:
            self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})

    def _set_status(self, obj: RawObject, status: RawObject) -> None:
        meta = obj["metadata"]
        try:
            self.client.patch(
                obj["kind"], meta["name"], meta.get("namespace"), {"status": status}, "merge", "status"
            )
        except Exception as e:
            if getattr(e, "code", None) not in (404, 405):
                raise

    def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        """Delete an object; pods on nodes take their grace period, which passes with `advance`."""
        self._do(lambda: self._delete(kind, name, namespace))

    def _delete(self, kind: str, name: str, namespace: str) -> None:
        try:
            self.client.delete(kind, name, namespace if self.store.resource(kind).namespaced else None)
        except Exception as e:
            if not hasattr(e, "code"):
                raise
            raise LabError(str(getattr(e, "message", e))) from e
        self._settle()

    def stop_node(self, name: str) -> None:
        """The machine dies: its kubelet falls silent. Needs `Lab(..., controllers=True)`. LabError without such a node."""
        self._do(lambda: self._kubelet(name).stop(name))

    def start_node(self, name: str) -> None:
        """It comes back. LabError as for `stop_node`."""
        self._do(lambda: self._start_node(name))

    def _start_node(self, name: str) -> None:
        self._kubelet(name).start(name)
        self._settle()

    def _kubelet(self, name: str) -> Kubelets:
        kubelets = self.background.kubelets
        if kubelets is None:
            raise LabError(
                t("this lab has no kubelets", "这个实验环境没有 kubelet"), hint="Lab(..., controllers=True)"
            )
        if self._find("Node", name, None) is None:
            raise LabError(t(f"there is no node {name!r}", f"没有名为 {name!r} 的节点"))
        return kubelets

    def pods(self, namespace: str | None = None) -> list[RawObject]:
        """All pods, as the API shows them."""
        return self.client.list("Pod", namespace)[0]

    def nodes(self) -> list[RawObject]:
        """All nodes, as the API shows them."""
        return self.client.list("Node")[0]

    def look(self, kind: str) -> list[RawObject]:
        """All objects of a kind without copying them: fast, for reading only. Empty when there is no such kind."""
        try:
            return self.store.list(kind, copy=False)[0]
        except Exception as e:
            if not hasattr(e, "code"):
                raise
            return []

    def events(self, pod: str | None = None) -> list[RawObject]:
        """Events in order of time; of one pod (`name` or `namespace/name`) if given."""
        found = (
            self.client.list("events.events.k8s.io")[0]
            if self._has_new_events()
            else self.client.list("Event")[0]
        )
        if pod is not None:
            namespace, _, name = pod.rpartition("/")
            found = [e for e in found if _regards(e, namespace or "default", name)]
        return sorted(found, key=lambda e: (e.get("eventTime") or "", e["metadata"]["name"]))

    def _has_new_events(self) -> bool:
        try:
            self.store.resource("events.events.k8s.io")
        except Exception:
            return False
        return True

    # --- the scheduler --------------------------------------------------------------------------------------

    def schedule_one(self) -> Trace | None:
        """One attempt for the pod at the head of the queue; its trace, or None when nobody waits."""
        found: Trace | None = self._do(self._attempt)
        return found

    def _attempt(self) -> Trace | None:
        found = self.scheduler.schedule_one()
        if self.background.step() and found is None:
            # Controllers may have made pods meanwhile.
            found = self.scheduler.schedule_one()
        return found

    step = schedule_one

    def run(self, limit: int = 100_000) -> list[Trace]:
        """Attempts until the active queue is empty; their traces."""
        return list(self._do(lambda: self._run(limit)))

    def _run(self, limit: int) -> list[Trace]:
        found: list[Trace] = []
        with progress(min(limit, len(self.scheduler.queue.active)), t("scheduling", "调度中")) as step:
            while len(found) < limit and (trace := self._attempt()) is not None:
                found.append(trace)
                step(1)
        return found

    def advance(self, duration: str | float) -> list[Trace]:
        """Let time pass: back-off ends, permits time out, grace periods run off; pods that become ready are tried."""
        seconds = parse_duration(duration)
        return list(self._do(lambda: self._advance(seconds)))

    def _advance(self, seconds: float) -> list[Trace]:
        target = self.clock.now() + seconds
        self._settle()
        # Nothing waits for a first tick where controllers work.
        found = self._run(100_000) if self._controllers else []
        while (due := self.clock.next_timer()) is not None and due <= target:
            self.clock.advance_to(due)
            found += self._run(100_000)
        self.clock.advance_to(target)
        found += self._run(100_000)
        return found

    @property
    def now(self) -> float:
        """Virtual seconds since the lab began."""
        return self.clock.now() - self.clock.start

    @property
    def queue(self) -> QueueView:
        """The queue as it stands."""
        return self.scheduler.view()

    @property
    def traces(self) -> list[Trace]:
        """The last attempts, oldest first."""
        return list(self.scheduler.traces)

    def trace(self, pod: str) -> Trace:
        """The last attempt of a pod (`name` or `namespace/name`). LabError when there was none."""
        key = pod if "/" in pod else f"default/{pod}"
        for found in reversed(self.scheduler.traces):
            if found.pod == key:
                return found
        raise LabError(f"pod {key} has not been tried yet", hint="lab.schedule_one() tries the next pod")

    def explain(self, pod: str) -> str:
        """What the last attempt decided and why, in words."""
        found = self.trace(pod)
        return f"{found.verdict()}\n{found.why()}"

    # --- what if, and back ------------------------------------------------------------------------------------

    def what_if(
        self,
        *,
        config: Any = None,
        plugins: Iterable[Any] = (),
        disable: Iterable[str] | Mapping[str, Iterable[str]] = (),
    ) -> WhatIf:
        """The waiting pods decided twice from the same state: as things are, and with the change.

        `config` replaces the configuration, `plugins` are added (or replace those of the same name), `disable`
        takes plugins out: everywhere, or, as `{name: [extension point, ...]}`, in part. Nothing in the lab changes.
        LabError for a plugin or an extension point that does not exist.
        """
        from labkit.what_if import compare

        switches = disable if isinstance(disable, Mapping) else dict.fromkeys(disable, ())
        return compare(self, config=config, plugins=list(plugins), disable=switches)

    @property
    def history(self) -> int:
        """How many steps `rewind` can take back."""
        return len(self._log)

    def rewind(self, steps: int = 1) -> None:
        """Take back the last calls: the lab begins anew and repeats all others. LabError when there are too few."""
        if not 0 < steps <= len(self._log):
            raise LabError(f"cannot take back {steps} steps: {len(self._log)} were made")
        self._repeat(self._log[: len(self._log) - steps])

    def _repeat(self, kept: list[Callable[[], Any]]) -> None:
        self._log = []
        self._setup()
        for action in kept:
            self._do(action)

    def playground(self) -> Any:
        """The lab as a widget: `labkit.widgets.playground(self)`."""
        # By name: widgets are built on the lab, not the lab on widgets.
        return importlib.import_module("labkit.widgets").playground(self)

    @property
    def metrics(self) -> Metrics:
        """What the scheduler counts, by kube-scheduler's names: `print(lab.metrics)`, `lab.metrics.samples()`.

        Counting costs time, so it begins with the first use: the lab then begins anew and repeats all calls.
        """
        if self.scheduler.metrics is None:
            self._counts = True
            self._repeat(self._log)
        found: Metrics = self.scheduler.metrics
        return found

    # --- outward ----------------------------------------------------------------------------------------------

    @staticmethod
    def connect(kubeconfig: Any = None, *, context: str | None = None) -> Any:
        """A live cluster behind a kubeconfig, to read and write; see `labkit.live_cluster.LiveCluster`."""
        # By name: a live cluster gives labs, so it is built on them.
        return importlib.import_module("labkit.live_cluster").LiveCluster.connect(kubeconfig, context=context)

    def serve(self, **options: Any) -> Any:
        """Put this cluster behind the Kubernetes API on a local port; see `labkit.cluster.apiserver.serve`."""
        from labkit.cluster.apiserver import serve

        return serve(self.store, **options)

    def extender(self, *plugins: Any, **options: Any) -> Any:
        """Serve plugins as a scheduler extender on a local port; see `labkit.extender.server.ExtenderServer`."""
        from labkit.extender.server import ExtenderServer
        from labkit.extender.service import ExtenderService

        return ExtenderServer(ExtenderService(plugins, client=self.client), **options)

    def __repr__(self) -> str:
        pods = self.pods()
        placed = sum(bool(_node_of(p)) for p in pods)
        waiting = len(pods) - placed
        nodes = len(self.nodes())
        return t(
            f"<Lab: {nodes} nodes, {placed} pods placed, {waiting} waiting, t + {self.now:g} s>",
            f"<Lab：{nodes} 个节点，{placed} 个 Pod 已放置，{waiting} 个等待，t + {self.now:g} 秒>",
        )


def _failing(action: Callable[[], Any]) -> None:
    with contextlib.suppress(Exception):
        action()


def _new_metrics() -> Metrics:
    from labkit.engine.metrics import Metrics

    return Metrics()


def _extenders(config: SchedulerConfig) -> list[Any]:
    if not config.extenders:
        return []
    from labkit.extender.client import build_extenders

    return list(build_extenders(config))


def _node_of(pod: RawObject) -> str:
    spec = pod.get("spec")
    return str(spec.get("nodeName") or "") if isinstance(spec, dict) else ""


def _regards(event: RawObject, namespace: str, name: str) -> bool:
    subject = event.get("regarding") or event.get("involvedObject") or {}
    return (subject.get("namespace"), subject.get("name")) == (namespace, name)
