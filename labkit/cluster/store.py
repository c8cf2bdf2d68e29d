"""The lab's cluster state: Kubernetes objects as plain dicts, with the API server's semantics (spec 20 §7, §8).

Everything that decides what a write means lives here and in the `store_*` modules, so that an in-process
client and one over HTTP see the same cluster. Time comes from a clock, uids from a seed.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from labkit.cluster import store_events, store_upkeep, store_writes
from labkit.cluster.store_errors import ApiError, internal, no_such_resource, not_found
from labkit.cluster.store_keys import key_of, object_key, select, table_at
from labkit.cluster.store_metadata import DEFAULT_OPTIONS, Ids, WriteOptions
from labkit.cluster.store_schema import copy as deep_copy
from labkit.cluster.store_selectors import Match, compile_selectors
from labkit.cluster.store_times import Clock, RealTime, format_time
from labkit.cluster.store_types import (
    EVENT,
    OPTIONAL_RESOURCES,
    RESOURCES,
    ResourceType,
    resource_type,
    stored_type,
)
from labkit.cluster.store_watch import ADDED, BOOKMARK, DELETED, MODIFIED, Change, History, Watch, WatchEvent

Kind = str | ResourceType
Objects = list[dict[str, Any]]
#: (event type, old object or None, new object or None); the dicts are the store's own: never write them.
Callback = Callable[[str, dict[str, Any] | None, dict[str, Any] | None], None]


class Store:
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

    # Reading

    @property
    def resource_version(self) -> str:
        """The version of the newest write."""
        return str(self._version)

    @property
    def version(self) -> int:
        """The same as a number."""
        return self._version

    def now_text(self) -> str:
        """The time as metadata writes it."""
        return format_time(self.clock.now())

    def peek(self, kind: Kind, name: str, namespace: str | None = None) -> dict[str, Any] | None:
        """The store's own object, or None. Read it, never write it."""
        resource = stored_type(self.resource(kind))
        return self._objects[resource].get(key_of(resource, name, namespace))

    def objects(self, kind: Kind) -> Mapping[str, dict[str, Any]]:
        """The store's own objects by key (`namespace/name`, or `name`). Read them, never write them."""
        return self._objects[stored_type(self.resource(kind))]

    def stored_resources(self) -> tuple[ResourceType, ...]:
        """The resources whose objects are kept."""
        return tuple(self._objects)

    @staticmethod
    def resource(kind: Kind) -> ResourceType:
        """The resource of a kind name. ApiError 404 for kinds that are not served or not stored."""
        try:
            found = resource_type(kind)
        except KeyError as e:
            raise ApiError(404, "NotFound", str(e.args[0]), {}) from None
        if found.create_only:
            raise no_such_resource()
        return found

    def get(
        self, kind: Kind, name: str, namespace: str | None = None, *, copy: bool = True
    ) -> dict[str, Any]:
        """One object; ApiError 404. `copy=False` gives the store's own dict, to be read only."""
        resource = self.resource(kind)
        found = self.peek(resource, name, namespace)
        if found is None:
            raise not_found(resource, name)
        found = store_events.as_seen_by(resource, found)
        return deep_copy(found) if copy else found

    def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        *,
        copy: bool = True,
    ) -> tuple[Objects, str]:
        """Objects in the order of their keys, and the resourceVersion of the list. ApiError 400 for bad selectors."""
        resource = self.resource(kind)
        match = compile_selectors(resource, label_selector, field_selector)
        with self.lock:
            found, version = self.select(resource, namespace, match), self._version
        if copy:
            found = [deep_copy(o) for o in found]
        return [store_events.as_seen_by(resource, o) for o in found], str(version)

    def select(
        self, resource: ResourceType, namespace: str | None, match: Match | None, *, at: int | None = None
    ) -> Objects:
        """The store's own objects that match, ordered, as of version `at`. ApiError 410 when that is lost."""
        kept = stored_type(resource)
        table: Mapping[str, dict[str, Any]] = self._objects[kept]
        if at is not None and at < self._version:
            table = table_at(kept, table, self._histories[kept], at)
        return select(kept, table, namespace, match)

    # Watching

    def subscribe(self, callback: Callback) -> Callable[[], None]:
        """Call back after each committed write, in order, in the writer's thread; returns the way to stop it.

        A callback may write: what it writes is told after the present change has been told to everybody.
        """
        with self.lock:
            self._callbacks.append(callback)

        def unsubscribe() -> None:
            with self.lock:
                if callback in self._callbacks:
                    self._callbacks.remove(callback)

        return unsubscribe

    def on_change(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """As `subscribe`, with the whole Change (resource and version)."""
        with self.lock:
            self._change_listeners.append(listener)

        def stop() -> None:
            with self.lock:
                if listener in self._change_listeners:
                    self._change_listeners.remove(listener)

        return stop

    def history(self, kind: Kind) -> History:
        """The changes of one resource that are still held."""
        return self._histories[stored_type(self.resource(kind))]

    def watch(
        self,
        kind: Kind | None = None,
        since: str | None = None,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        bookmark: bool = False,
    ) -> Watch:
        """Events of one resource, or of all. Without `since`: first an ADDED for each object there is.

        `bookmark` ends those with a BOOKMARK that carries `k8s.io/initial-events-end`. What is too old for the
        history gives one ERROR event with Status 410, and the watch is over.
        """
        resources = list(self._objects) if kind is None else [self.resource(kind)]
        match = compile_selectors(resources[0], label_selector, field_selector)
        with self.lock:
            initial: list[WatchEvent] = []
            histories = [self._histories[stored_type(r)] for r in resources]
            positions: list[int | None] = [h.end for h in histories]
            if since is None:
                for r in resources:
                    found = self.select(r, namespace, match)
                    initial += [WatchEvent(ADDED, deep_copy(store_events.as_seen_by(r, o))) for o in found]
                if bookmark:
                    initial.append(WatchEvent(BOOKMARK, self.bookmark(resources[0], initial_end=True)))
            else:
                try:
                    version = int(since)
                except ValueError:
                    raise internal(f'strconv.ParseUint: parsing "{since}": invalid syntax') from None
                positions = [h.position_after(version) for h in histories]
            one = resources[0] if kind is not None else None

            def convert(obj: dict[str, Any]) -> dict[str, Any]:
                seen = obj if one is None else store_events.as_seen_by(one, obj)
                return deep_copy(seen)

            return Watch(
                self.lock,
                histories,
                positions,
                lambda: self._version,
                initial,
                namespace=namespace,
                match=match,
                convert=convert,
            )

    def bookmark(
        self, resource: ResourceType, *, initial_end: bool = False, version: int | None = None
    ) -> dict[str, Any]:
        """The object of a BOOKMARK event."""
        meta: dict[str, Any] = {"resourceVersion": str(self._version if version is None else version)}
        if initial_end:
            meta["annotations"] = {"k8s.io/initial-events-end": "true"}
        return {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}

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
    ) -> dict[str, Any]:
        """Change an object by a `strategic`, `merge`, `json` or `apply` patch and return it (spec 20 §8.5)."""
        from labkit.cluster import store_patching

        with self.lock:
            resource = self.resource(kind)
            found, _ = store_patching.patch(
                self, resource, name, namespace, patch, patch_type, subresource, force=force, options=options
            )
            return deep_copy(found)

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
    ) -> dict[str, Any]:
        """Delete, or begin to: pods wait for their grace period, finalizers for their owners (spec 20 §8.3).

        Returns the object as it is then, or was last.
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
            return deep_copy(found)

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
