"""Reading the cluster's state: objects, lists, subscriptions and watches (spec 20 §7)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from labkit.cluster import store_events
from labkit.cluster.store_errors import ApiError, internal, no_such_resource, not_found
from labkit.cluster.store_keys import key_of, select, table_at
from labkit.cluster.store_schema import copy as deep_copy
from labkit.cluster.store_selectors import Match, compile_selectors
from labkit.cluster.store_times import Clock, format_time
from labkit.cluster.store_types import ResourceType, resource_type, stored_type
from labkit.cluster.store_watch import ADDED, BOOKMARK, Change, History, Watch, WatchEvent

Kind = str | ResourceType
Objects = list[dict[str, Any]]
#: (event type, old object or None, new object or None); the dicts are the store's own: never write them.
Callback = Callable[[str, dict[str, Any] | None, dict[str, Any] | None], None]


class StoreReading:
    """What a Store lets others see. The Store makes the attributes and is the only one that writes them."""

    clock: Clock
    lock: threading.Condition
    _objects: dict[ResourceType, dict[str, dict[str, Any]]]
    _version: int
    _callbacks: list[Callback]
    _change_listeners: list[Callable[[Change], None]]
    _histories: dict[ResourceType, History]

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
