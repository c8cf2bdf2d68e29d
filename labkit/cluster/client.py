"""One client protocol for every cluster: the lab's own store, and a live one over the network.

Objects are plain Kubernetes JSON dicts; refusals are `ApiError` with the API server's code, reason and text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from labkit.cluster.store import Store
from labkit.cluster.store_metadata import WriteOptions
from labkit.cluster.store_watch import Watch, WatchEvent

Json = dict[str, Any]


class WatchStream(Protocol):
    """Events of a watch. After an event of type ERROR it is over."""

    def poll(self) -> list[WatchEvent]:
        """What has come in, without waiting."""

    def next_event(self, timeout: float | None = None) -> WatchEvent | None:
        """The next event; None after `timeout` seconds, or when the watch is closed."""

    def close(self) -> None:
        """End it."""

    def __iter__(self) -> Iterator[WatchEvent]: ...


class ClusterClient(Protocol):
    """What the engine, the controllers and the lab need of a cluster."""

    def get(self, kind: str, name: str, namespace: str | None = None) -> Json:
        """One object. ApiError 404."""

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> tuple[list[Json], str]:
        """Objects, and the resourceVersion to watch from."""

    def create(self, obj: Json, *, dry_run: bool = False) -> Json:
        """Create, and return what was stored."""

    def update(self, obj: Json, subresource: str | None = None) -> Json:
        """Replace; a stale metadata.resourceVersion is ApiError 409."""

    def patch(
        self,
        kind: str,
        name: str,
        namespace: str | None,
        patch: Any,
        patch_type: str = "strategic",
        subresource: str | None = None,
    ) -> Json:
        """Change by a `strategic`, `merge`, `json` or `apply` patch."""

    def patch_status(self, kind: str, name: str, namespace: str | None, patch: Json) -> None:
        """Strategic merge patch of the status subresource; `patch` has the key `status`."""

    def delete(
        self,
        kind: str,
        name: str,
        namespace: str | None = None,
        grace_period_seconds: int | None = None,
        preconditions: Json | None = None,
        propagation: str | None = None,
    ) -> None:
        """Delete, or begin to."""

    def bind(self, namespace: str, name: str, uid: str | None, node: str) -> None:
        """Assign a pod to a node. ApiError 404, 409."""

    def evict(self, namespace: str, name: str, grace_period_seconds: int | None = None) -> None:
        """Delete a pod if its disruption budget allows. ApiError 429."""

    def create_event(self, event: Json) -> None:
        """Store an event; namespace and name are in its metadata."""

    def watch(
        self,
        kind: str | None = None,
        since: str | None = None,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> WatchStream:
        """Events after version `since`; without it, first an ADDED for each object."""


class StoreClient:
    """The client of a `Store` in this process."""

    def __init__(self, store: Store, *, field_manager: str = "") -> None:
        self.store = store
        self._options = WriteOptions(field_manager=field_manager)

    def get(self, kind: str, name: str, namespace: str | None = None) -> Json:
        """One object, copied."""
        return self.store.get(kind, name, namespace)

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> tuple[list[Json], str]:
        """Objects, copied, and the list's version."""
        return self.store.list(kind, namespace, label_selector, field_selector)

    def create(self, obj: Json, *, dry_run: bool = False) -> Json:
        """Create."""
        options = self._options if not dry_run else WriteOptions(dry_run, self._options.field_manager)
        return self.store.create(obj, options=options)

    def update(self, obj: Json, subresource: str | None = None) -> Json:
        """Replace."""
        return self.store.update(obj, subresource, options=self._options)

    def patch(
        self,
        kind: str,
        name: str,
        namespace: str | None,
        patch: Any,
        patch_type: str = "strategic",
        subresource: str | None = None,
    ) -> Json:
        """Patch."""
        return self.store.patch(kind, name, namespace, patch, patch_type, subresource, options=self._options)

    def patch_status(self, kind: str, name: str, namespace: str | None, patch: Json) -> None:
        """Strategic merge patch of the status."""
        self.store.patch(
            kind, name, namespace, patch, "strategic", "status", options=self._options, copy=False
        )

    def delete(
        self,
        kind: str,
        name: str,
        namespace: str | None = None,
        grace_period_seconds: int | None = None,
        preconditions: Json | None = None,
        propagation: str | None = None,
    ) -> None:
        """Delete."""
        self.store.delete(kind, name, namespace, grace_period_seconds, preconditions, propagation, copy=False)

    def bind(self, namespace: str, name: str, uid: str | None, node: str) -> None:
        """Bind."""
        self.store.bind(namespace, name, uid, node)

    def evict(self, namespace: str, name: str, grace_period_seconds: int | None = None) -> None:
        """Evict."""
        self.store.evict(namespace, name, grace_period_seconds)

    def create_event(self, event: Json) -> None:
        """Store an event of either API group."""
        self.store.create(event, options=self._options, copy=False)

    def watch(
        self,
        kind: str | None = None,
        since: str | None = None,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> Watch:
        """Watch."""
        return self.store.watch(
            kind, since, namespace, label_selector=label_selector, field_selector=field_selector
        )
