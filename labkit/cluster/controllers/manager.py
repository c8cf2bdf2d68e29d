"""All controllers of a cluster over one set of watches: step by step in virtual time, or on a thread in real time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from labkit.cluster.controllers.autoscaler import AutoscalerController
from labkit.cluster.controllers.cronjob import CronJobController
from labkit.cluster.controllers.daemonset import DaemonSetController
from labkit.cluster.controllers.deployment import DeploymentController
from labkit.cluster.controllers.eviction import TaintEvictionController
from labkit.cluster.controllers.garbage import GarbageCollector
from labkit.cluster.controllers.job import JobController
from labkit.cluster.controllers.node_lifecycle import NodeLifecycleController
from labkit.cluster.controllers.pod_garbage import PodGarbageCollector
from labkit.cluster.controllers.replicaset import ReplicaSetController
from labkit.cluster.controllers.statefulset import StatefulSetController
from labkit.cluster.controllers.volumes import VolumeController
from labkit.cluster.controllers.world import Controller, Json, Timers, World, key_of
from labkit.cluster.store_errors import ApiError
from labkit.framework.clock import RealClock

#: All of them; volumes apart, which a lab in virtual time must run while the scheduler waits for them.
CONTROLLERS: tuple[Callable[[World], Controller], ...] = (
    AutoscalerController,
    DeploymentController,
    ReplicaSetController,
    StatefulSetController,
    DaemonSetController,
    JobController,
    CronJobController,
    NodeLifecycleController,
    TaintEvictionController,
    PodGarbageCollector,
    GarbageCollector,
)
VOLUMES: tuple[Callable[[World], Controller], ...] = (VolumeController,)
#: (type of event, old, new): as `Store.subscribe` calls back.
Listener = Callable[[str, Json | None, Json | None], None]
_IDLE_SECONDS = 0.5
#: Rounds of one step after which two controllers must be taken to undo each other's work.
_ROUNDS = 10_000


class ControllerManager:
    """Runs controllers. `client` must give watches that show a write as soon as it has returned (StoreClient).

    In virtual time the clock's timers mark what is due; call `step` after each change and each moment of time.
    With a RealClock, `start` runs everything on one thread, until `stop`. Listeners hear of pods and nodes there.
    """

    def __init__(
        self,
        client: Any,
        clock: Any,
        *,
        controllers: Iterable[Callable[[World], Controller]] = (*CONTROLLERS, *VOLUMES),
    ) -> None:
        # Real timers run on threads of their own, and controllers are not made for that.
        self.timers: Any = Timers(clock.now) if isinstance(clock, RealClock) else clock
        self.world = World(client, self.timers)
        self.controllers = [make(self.world) for make in controllers]
        self._client = client
        self._listeners: list[Listener] = []
        self._hearers: dict[str, list[Controller]] = {}
        for controller in self.controllers:
            for kind in controller.kinds:
                self._hearers.setdefault(kind, []).append(controller)
        self._watches: dict[str, Any] = {}
        self._polled = -1
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    # --- virtual time ---------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Do everything that can be done now; whether there was anything."""
        worked = False
        for _ in range(_ROUNDS):
            if not self._round():
                return worked
            worked = True
        raise RuntimeError("controllers do not come to rest")

    def run_due(self) -> bool:
        """Timers that are due (of a real clock: a virtual one runs its own), then a step."""
        due = isinstance(self.timers, Timers) and self.timers.run_due()
        return self.step() or due

    def _round(self) -> bool:
        worked = self._poll()
        for controller in self.controllers:
            if controller.work():
                worked = True
                # The next one sees what this one did.
                self._poll()
        return worked

    def _poll(self) -> bool:
        store = getattr(self._client, "store", None)
        if store is not None:
            # Many watches, and most of the time nothing in any of them.
            if store.version == self._polled:
                return False
            self._polled = store.version
        heard = False
        for kind in self._hearers:
            watch = self._watches.get(kind)
            if watch is None:
                watch = self._watches[kind] = self._client.watch(kind)
            for event in watch.poll():
                if event.type == "ERROR":
                    self._relist(kind)
                    break
                if event.type in ("ADDED", "MODIFIED", "DELETED"):
                    self._heard(kind, event.type, event.object)
                    heard = True
        return heard

    def _relist(self, kind: str) -> None:
        """The watch lost its place: compare, and watch from there."""
        items, version = self._client.list(kind)
        gone = self.world.keys(kind) - {key_of(o) for o in items}
        for key in sorted(gone):
            old = self.world.get(kind, key)
            if old is not None:
                self._heard(kind, "DELETED", old)
        for obj in items:
            known = self.world.get(kind, key_of(obj))
            if known is None or known["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
                self._heard(kind, "ADDED" if known is None else "MODIFIED", obj)
        self._watches[kind] = self._client.watch(kind, since=version)

    def _heard(self, kind: str, type_: str, obj: Json) -> None:
        if type_ == "DELETED":
            old: Json | None = self.world.remove(kind, key_of(obj)) or obj
            new: Json | None = None
        else:
            old, new = self.world.put(kind, obj), obj
        for controller in self._hearers[kind]:
            controller.observe(kind, old, new)
        for listener in self._listeners:
            listener(type_, old, new)

    # --- real time ------------------------------------------------------------------------------------------

    def listen(self, listener: Listener) -> None:
        """Have `listener` called, on the manager's thread, with each change that the controllers hear of."""
        self._listeners.append(listener)

    def wake(self) -> None:
        """Something has happened in the cluster. Thread-safe."""
        self._wake.set()

    def start(self) -> None:
        """Run on a thread."""
        self._thread = threading.Thread(target=self._run, name="controllers", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
        for watch in self._watches.values():
            watch.close()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self.run_due()
            except (ApiError, ConnectionError):
                # The API is away for a moment; what is marked stays marked.
                self._stopped.wait(_IDLE_SECONDS)
            due = self.timers.next_due() if isinstance(self.timers, Timers) else None
            pause = _IDLE_SECONDS if due is None else min(_IDLE_SECONDS, max(0.0, due - self.timers.now()))
            self._wake.wait(pause)
            self._wake.clear()
