"""What a lab's cluster does by itself in virtual time: the plain node side, or controllers and kubelets."""

from __future__ import annotations

from typing import Any

from labkit.cluster.client import StoreClient
from labkit.cluster.controllers.manager import CONTROLLERS, VOLUMES, ControllerManager
from labkit.cluster.kubelet import Kubelets
from labkit.cluster.node_agent import NodeAgent
from labkit.cluster.store import Store
from labkit.cluster.volume_agent import VolumeAgent
from labkit.framework.clock import VirtualClock

Json = dict[str, Any]
_MANAGER = "kube-controller-manager"
_STORAGE = ("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "Node")


class Background:
    """`step` after each change and each moment of time. `kubelets` and `manager` only with controllers."""

    kubelets: Kubelets | None = None
    manager: ControllerManager | None = None

    def step(self) -> bool:
        """Do what is to be done now; whether there was anything."""
        return self.manager.step() if self.manager is not None else False


class _Plain(Background):
    def __init__(self, store: Store, clock: VirtualClock) -> None:
        self.agent = NodeAgent(store, clock)
        self.volume_agent = VolumeAgent(store)


class _Controlled(Background):
    def __init__(self, store: Store, clock: VirtualClock) -> None:
        store.has_garbage_collector = store.taint_new_nodes = True
        self.kubelets = Kubelets(StoreClient(store, field_manager="kubelet"), clock)
        store.subscribe(self.kubelets.on_change)
        self.manager = ControllerManager(
            StoreClient(store, field_manager=_MANAGER), clock, controllers=CONTROLLERS
        )
        # While the scheduler waits for its volumes no virtual time passes: they are bound within its call.
        volumes = ControllerManager(StoreClient(store, field_manager=_MANAGER), clock, controllers=VOLUMES)

        def storage(type_: str, old: Json | None, new: Json | None) -> None:
            if ((new if new is not None else old) or {}).get("kind") in _STORAGE:
                volumes.step()

        store.subscribe(storage)


def background(store: Store, clock: VirtualClock, *, controllers: bool) -> Background:
    """The background of a lab: with `controllers`, or pods that simply run and volumes that simply bind."""
    return _Controlled(store, clock) if controllers else _Plain(store, clock)
