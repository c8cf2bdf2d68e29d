"""What runs beside a served store to make a whole cluster of it: controllers, kubelets and our scheduler."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from labkit.cluster.client import StoreClient
from labkit.cluster.controllers.manager import ControllerManager
from labkit.cluster.kubelet import Kubelets
from labkit.cluster.store import Store
from labkit.config import load_config
from labkit.engine.scheduler import Scheduler
from labkit.framework.clock import RealClock

Json = dict[str, Any]
#: Annotation of a node: with the value `stopped` its kubelet is silent, as that of a machine that died.
KUBELET = "lab.kubernetes.io/kubelet"
_IDLE_SECONDS = 0.5


class ControlPlane:
    """Starts at once and runs in real time on threads of this process, until `stop()`."""

    def __init__(
        self,
        store: Store,
        *,
        controllers: bool = True,
        scheduler: bool = True,
        config: Any = None,
        start_seconds: float = 1.0,
    ) -> None:
        clock = RealClock()
        self._stops: list[Callable[[], None]] = []
        self.manager: ControllerManager | None = None
        self.scheduler: Scheduler | None = None
        if controllers:
            self.manager = manager = _controllers(store, clock, start_seconds)
            self._stops += [store.subscribe(lambda *_: manager.wake()), manager.stop]
            manager.start()
        if scheduler:
            loop = _SchedulerLoop(store, config, clock)
            self.scheduler = loop.scheduler
            self._stops.append(loop.stop)

    def stop(self) -> None:
        """End the threads. The store stays open."""
        while self._stops:
            self._stops.pop()()


def _controllers(store: Store, clock: RealClock, start_seconds: float) -> ControllerManager:
    store.has_garbage_collector = store.taint_new_nodes = True
    manager = ControllerManager(StoreClient(store, field_manager="kube-controller-manager"), clock)
    # On the manager's thread and by its timers: kubelets have no locks.
    kubelets = Kubelets(
        StoreClient(store, field_manager="kubelet"), manager.timers, start_seconds=start_seconds
    )

    def hear(type_: str, old: Json | None, new: Json | None) -> None:
        obj = new if new is not None else old
        if obj is None or obj.get("kind") not in ("Pod", "Node"):
            return
        name = obj["metadata"]["name"]
        if obj["kind"] == "Node":
            silent = (obj["metadata"].get("annotations") or {}).get(KUBELET) == "stopped"
            if silent:
                kubelets.stop(name)
        kubelets.on_change(type_, old, new)
        if obj["kind"] == "Node" and not silent and new is not None and not kubelets.runs(name):
            kubelets.start(name)

    manager.listen(hear)
    return manager


class _SchedulerLoop:
    def __init__(self, store: Store, config: Any, clock: RealClock) -> None:
        self.scheduler = Scheduler(
            StoreClient(store, field_manager="kube-scheduler"),
            load_config(config),
            clock=clock,
            trace="off",
        )
        self._wake = threading.Event()
        self._stopped = threading.Event()
        with store.lock:
            # Nothing may happen between the first lists and the first news.
            self.scheduler.load()
            self._unsubscribe = store.subscribe(self._hear)
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)
        self._thread.start()

    def _hear(self, type_: str, old: Json | None, new: Json | None) -> None:
        self.scheduler.notify(old, new)
        self._wake.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            if self.scheduler.schedule_one() is None:
                self._wake.wait(_IDLE_SECONDS)
                self._wake.clear()

    def stop(self) -> None:
        self._stopped.set()
        self._wake.set()
        self._thread.join(timeout=5)
        self._unsubscribe()
