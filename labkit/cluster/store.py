"""The lab's cluster state: Kubernetes objects as plain dicts, with the API server's semantics (spec 20 §7, §8).

Everything that decides what a write means lives here and in the `store_*` modules, so that an in-process
client and one over HTTP see the same cluster. Time comes from a clock, uids from a seed.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labkit.cluster import store_events, store_upkeep, store_writes
from labkit.cluster.store_errors import internal
from labkit.cluster.store_keys import object_key
from labkit.cluster.store_metadata import DEFAULT_OPTIONS, Ids, WriteOptions
from labkit.cluster.store_reading import Callback, Kind, StoreReading
from labkit.cluster.store_schema import copy as deep_copy
from labkit.cluster.store_times import Clock, RealTime
from labkit.cluster.store_types import (
    EVENT,
    OPTIONAL_RESOURCES,
    RESOURCES,
    ResourceType,
    resource_type,
    stored_type,
)
from labkit.cluster.store_watch import ADDED, DELETED, MODIFIED, Change, History


class Store(StoreReading):
    """Objects, versions and watches of one cluster.

    `clock.now()` gives the time in seconds since the epoch; `seed` fixes uids and generated names; `data_dir`
    keeps everything in SQLite; `admission=False` leaves out what admission plugins fill in or refuse (priority,
    tolerations, quota, limits, namespaces that must exist). `history` changes of each resource are kept for watches.
    `taint_new_nodes` gives each new node the taint `node.kubernetes.io/not-ready`, as clusters do whose node
    lifecycle controller takes it off. Without `pod_groups` (gate GenericWorkload) new pods lose `spec.schedulingGroup`.
    Methods raise ApiError with the code and text of the real API server.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        seed: int | str = 0,
        data_dir: str | Path | None = None,
        admission: bool = True,
        *,
        history: int = 4096,
        taint_new_nodes: bool = False,
        bootstrap: bool = True,
        synchronous: str = "NORMAL",
        pod_groups: bool = False,
    ) -> None:
        self.clock: Clock = clock or RealTime()
        self.admission = admission
        self.taint_new_nodes = taint_new_nodes
        self.pod_groups = pod_groups
        #: Set by a garbage collector: then Foreground and Orphan deletion leave it their finalizers.
        self.has_garbage_collector = False
        self.lock = threading.Condition(threading.RLock())
        self._objects: dict[ResourceType, dict[str, dict[str, Any]]] = {
            r: {} for r in (*RESOURCES, *OPTIONAL_RESOURCES) if not r.create_only and stored_type(r) is r
        }
        self._version = 0
        self._callbacks: list[Callback] = []
        self._change_listeners: list[Callable[[Change], None]] = []
        self._undelivered: deque[Change] = deque()
        self._delivering = False
        self._database = None
        if data_dir is not None:
            from labkit.cluster.store_persistence import Database

            self._database = Database(data_dir, synchronous=synchronous)
            self._load()
        # A store that goes on from disk must not give out the uids of its first life again.
        self.ids = Ids(f"{seed}/{self._version}")
        self._histories = {r: History(history, self._version) for r in self._objects}
        self._expiry = store_events.Expiry(self)
        if bootstrap and not self._objects[resource_type("Namespace")]:
            from labkit.cluster.store_bootstrap import bootstrap as fill

            with self.lock:
                fill(self)

    def _load(self) -> None:
        assert self._database is not None
        by_name = {r.resource_name: r for r in self._objects}
        for name, key, obj in self._database.load():
            if (resource := by_name.get(name)) is not None:
                self._objects[resource][key] = obj
        self._version = self._database.version()

    # Writing

    def create(
        self,
        obj: dict[str, Any],
        *,
        resource: ResourceType | None = None,
        options: WriteOptions = DEFAULT_OPTIONS,
        copy: bool = True,
    ) -> dict[str, Any]:
        """Store a new object and return it with what the server filled in; `copy=False`: the store's own dict.

        ApiError: 404 namespace missing, 403 admission, 409 exists, 422 invalid, 400 malformed.
        """
        with self.lock:
            found = store_writes.create(self, obj, resource, options)
        return deep_copy(found) if copy else found

    def update(
        self,
        obj: dict[str, Any],
        subresource: str | None = None,
        *,
        resource: ResourceType | None = None,
        options: WriteOptions = DEFAULT_OPTIONS,
    ) -> dict[str, Any]:
        """Replace an object (or its status, or its scale) and return it. ApiError 409 when its resourceVersion is stale."""
        with self.lock:
            return deep_copy(store_writes.update(self, obj, subresource, resource, options)[0])

    def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        patch: Any,
        patch_type: str = "strategic",
        subresource: str | None = None,
        *,
        force: bool = False,
        options: WriteOptions = DEFAULT_OPTIONS,
        copy: bool = True,
    ) -> dict[str, Any]:
        """Change an object by a `strategic`, `merge`, `json` or `apply` patch and return it (spec 20 §8.5).

        `copy=False`: the store's own dict.
        """
        from labkit.cluster import store_patching

        with self.lock:
            resource = self.resource(kind)
            found, _ = store_patching.patch(
                self, resource, name, namespace, patch, patch_type, subresource, force=force, options=options
            )
            return deep_copy(found) if copy else found

    def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        grace_period_seconds: int | None = None,
        preconditions: dict[str, Any] | None = None,
        propagation: str | None = None,
        *,
        options: WriteOptions = DEFAULT_OPTIONS,
        copy: bool = True,
    ) -> dict[str, Any]:
        """Delete, or begin to: pods wait for their grace period, finalizers for their owners (spec 20 §8.3).

        Returns the object as it is then, or was last; `copy=False`: the store's own dict.
        """
        from labkit.cluster import store_deletion

        with self.lock:
            found = store_deletion.delete(
                self,
                self.resource(kind),
                name,
                namespace,
                grace_period_seconds,
                preconditions,
                propagation,
                options,
            )
            return deep_copy(found) if copy else found

    def bind(
        self,
        namespace: str,
        name: str,
        uid: str | None,
        node: str,
        *,
        annotations: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
        topology: bool = True,
        options: WriteOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Assign a pod to a node (spec 20 §8.4). ApiError 404, or 409 when it is bound, gated, or being deleted."""
        from labkit.cluster import store_pods

        with self.lock:
            store_pods.bind(self, namespace, name, uid, node, annotations, labels, options, topology=topology)

    def evict(
        self,
        namespace: str,
        name: str,
        grace_period_seconds: int | None = None,
        preconditions: dict[str, Any] | None = None,
        *,
        options: WriteOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Delete a pod if its PodDisruptionBudget allows; ApiError 429 when it does not."""
        from labkit.cluster import store_pods

        with self.lock:
            store_pods.evict(self, namespace, name, grace_period_seconds, preconditions, options)

    # The one door to the data, for the store_* modules

    def commit(
        self, resource: ResourceType, old: dict[str, Any] | None, new: dict[str, Any], *, remove: bool = False
    ) -> dict[str, Any]:
        """Make a write durable and visible, and tell it. `new` belongs to the store from here on."""
        resource = stored_type(resource)
        key = object_key(resource, new)
        version = self._version + 1
        new["metadata"]["resourceVersion"] = str(version)
        if self._database is not None:
            try:
                self._database.write(version, resource.resource_name, key, None if remove else new)
            except sqlite3.Error as e:
                raise internal(f"cannot store the object: {e}") from e
        self._version = version
        table = self._objects[resource]
        if remove:
            table.pop(key, None)
            kind = DELETED
        else:
            table[key] = new
            kind = ADDED if old is None else MODIFIED
        change = Change(version, kind, resource, old, new)
        self._histories[resource].append(change)
        if resource is EVENT:
            self._expiry.note(change)
        self._undelivered.append(change)
        self._deliver()
        return new

    def _deliver(self) -> None:
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._undelivered:
                change = self._undelivered.popleft()
                new = None if change.type == DELETED else change.new
                old = (change.old or change.new) if change.type == DELETED else change.old
                for listener in tuple(self._change_listeners):
                    listener(change)
                for callback in tuple(self._callbacks):
                    callback(change.type, old, new)
                if self.admission:
                    store_upkeep.after(self, change)
        finally:
            self._delivering = False
            self.lock.notify_all()

    def close(self) -> None:
        """Close the database, if there is one."""
        with self.lock:
            if self._database is not None:
                self._database.close()
                self._database = None
