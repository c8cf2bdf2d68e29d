"""What every controller works with: the cluster as its watches show it, a client, timers."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable
from typing import Any

from labkit.cluster.store_errors import ApiError
from labkit.cluster.store_times import format_micro_time, format_time

Json = dict[str, Any]
#: Seconds after which what the API refused is tried again.
RETRY_SECONDS = 10.0
Key = tuple[str, str]


def key_of(obj: Json) -> Key:
    """(namespace, name)."""
    meta = obj["metadata"]
    return meta.get("namespace") or "", meta["name"]


def controller_of(obj: Json) -> Json | None:
    """The owner reference of the object's controller."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            found: Json = reference
            return found
    return None


def owner_reference(owner: Json) -> Json:
    """The reference by which a controller owns what it creates."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


class Timers:
    """Calls in the future, made by `run_due` and never by a thread of their own. Seconds of the clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = itertools.count()

    def call_at(self, when: float, callback: Callable[[], None]) -> None:
        """Call `callback` at `when`."""
        heapq.heappush(self._heap, (when, next(self._sequence), callback))

    def next_due(self) -> float | None:
        """When the next call is due."""
        return self._heap[0][0] if self._heap else None

    def run_due(self) -> bool:
        """Make the calls that are due; whether there were any."""
        ran = False
        while self._heap and self._heap[0][0] <= self.now():
            heapq.heappop(self._heap)[2]()
            ran = True
        return ran


class World:
    """Objects of the watched kinds, by (namespace, name), with who controls them. Read them, never write them."""

    def __init__(self, client: Any, timers: Timers) -> None:
        self.client = client
        self.timers = timers
        self._objects: dict[str, dict[Key, Json]] = {}
        self._children: dict[str, dict[tuple[str, Key], Json]] = {}
        self._events = 0

    def put(self, kind: str, new: Json) -> Json | None:
        """Take in an object; what it was before."""
        key = key_of(new)
        old = self._objects.setdefault(kind, {}).get(key)
        if old is not None:
            self._disown(kind, key, old)
        self._objects[kind][key] = new
        for reference in new["metadata"].get("ownerReferences") or ():
            self._children.setdefault(reference.get("uid", ""), {})[kind, key] = new
        return old

    def remove(self, kind: str, key: Key) -> Json | None:
        """Forget an object; what it was."""
        old = self._objects.get(kind, {}).pop(key, None)
        if old is not None:
            self._disown(kind, key, old)
        return old

    def _disown(self, kind: str, key: Key, old: Json) -> None:
        for reference in old["metadata"].get("ownerReferences") or ():
            children = self._children.get(reference.get("uid", ""))
            if children is not None:
                children.pop((kind, key), None)
                if not children:
                    del self._children[reference.get("uid", "")]

    def get(self, kind: str, key: Key) -> Json | None:
        """One object, or None."""
        return self._objects.get(kind, {}).get(key)

    def all(self, kind: str) -> list[Json]:
        """All of a kind, in order of their keys."""
        found = self._objects.get(kind, {})
        return [found[k] for k in sorted(found)]

    def keys(self, kind: str) -> set[Key]:
        """Their keys."""
        return set(self._objects.get(kind, {}))

    def owned(self, owner: Json, kind: str) -> list[Json]:
        """What an object controls, in order of keys."""
        uid = owner["metadata"]["uid"]
        found = [
            (key, obj)
            for (k, key), obj in self._children.get(uid, {}).items()
            if k == kind and (controller_of(obj) or {}).get("uid") == uid
        ]
        return [obj for _, obj in sorted(found, key=lambda item: item[0])]

    def dependents(self, uid: str) -> list[tuple[str, Json]]:
        """(kind, object) of everything that names this uid as an owner."""
        return [
            (kind, obj) for (kind, _), obj in sorted(self._children.get(uid, {}).items(), key=lambda i: i[0])
        ]

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return self.timers.now()

    def time(self) -> str:
        """The time as the API writes it."""
        return format_time(self.now)

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Call later."""
        self.timers.call_at(self.now + seconds, call)

    # --- writing --------------------------------------------------------------------------------------------

    def set_status(self, obj: Json, status: Json) -> None:
        """Write what differs of an object's status; a None takes a field out."""
        before = obj.get("status") or {}
        changed = {
            k: v for k, v in status.items() if before.get(k) != v and not (v is None and k not in before)
        }
        if changed:
            meta = obj["metadata"]
            self.client.patch(
                obj["kind"], meta["name"], meta.get("namespace"), {"status": changed}, "merge", "status"
            )

    def patch(self, obj: Json, patch: Json) -> Json:
        """Merge-patch an object."""
        meta = obj["metadata"]
        found: Json = self.client.patch(obj["kind"], meta["name"], meta.get("namespace"), patch, "merge")
        return found

    def delete(self, obj: Json, grace: int | None = None, propagation: str | None = None) -> None:
        """Delete this very object; that it is gone already is fine."""
        meta = obj["metadata"]
        try:
            self.client.delete(
                obj["kind"], meta["name"], meta.get("namespace"), grace, {"uid": meta["uid"]}, propagation
            )
        except ApiError as e:
            if e.code not in (404, 409):
                raise

    def event(self, obj: Json, reason: str, note: str, source: str, type_: str = "Normal") -> None:
        """Write an event about an object; what the API refuses is dropped, as events are best effort."""
        meta = obj["metadata"]
        namespace = meta.get("namespace") or "default"
        self._events += 1
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "name": f"{meta['name']}.{int(self.now * 1e6) + self._events:x}",
                "namespace": namespace,
            },
            "eventTime": format_micro_time(self.now),
            "reportingController": source,
            "reportingInstance": source,
            "action": reason,
            "reason": reason,
            "regarding": {
                "apiVersion": obj["apiVersion"],
                "kind": obj["kind"],
                "namespace": meta.get("namespace"),
                "name": meta["name"],
                "uid": meta["uid"],
            },
            "note": note,
            "type": type_,
        }
        try:
            self.client.create_event(event)
        except ApiError:
            return


class Controller:
    """Level-triggered: changes mark keys, `work` brings each marked key to where it should be."""

    #: Kinds that this one wants to hear of.
    kinds: tuple[str, ...] = ()

    def __init__(self, world: World) -> None:
        self.world = world
        self._marked: dict[Key, None] = {}

    def observe(self, kind: str, old: Json | None, new: Json | None) -> None:
        """Hear of a change; marks the keys that it concerns."""
        raise NotImplementedError

    def reconcile(self, key: Key) -> None:
        """Bring one key to where it should be. ApiError is tried again later."""
        raise NotImplementedError

    def mark(self, key: Key) -> None:
        """Have a key looked at."""
        self._marked[key] = None

    def mark_later(self, key: Key, seconds: float) -> None:
        """Have it looked at after so many seconds."""
        self.world.after(seconds, lambda: self.mark(key))

    def mark_owner(self, kind: str, objects: Iterable[Json | None]) -> None:
        """Mark the controllers, of one kind, of some objects."""
        for obj in objects:
            reference = controller_of(obj) if obj is not None else None
            if obj is not None and reference is not None and reference.get("kind") == kind:
                self.mark((obj["metadata"].get("namespace") or "", reference["name"]))

    def work(self) -> bool:
        """Look at everything that is marked; whether there was anything."""
        marked, self._marked = self._marked, {}
        for key in marked:
            try:
                self.reconcile(key)
            except ApiError as e:
                # A conflict or a missing object: news of it are on the way and mark the key again.
                if e.code not in (404, 409):
                    self.mark_later(key, RETRY_SECONDS)
        return bool(marked)
