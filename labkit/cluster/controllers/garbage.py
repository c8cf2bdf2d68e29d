"""What nobody owns any more is deleted: ownerReferences, with background, foreground and orphaning deletion."""

from __future__ import annotations

from typing import Any

from labkit.cluster.controllers.world import Controller, Json, Key, key_of
from labkit.cluster.store_deletion import FOREGROUND, ORPHAN
from labkit.cluster.store_errors import ApiError
from labkit.cluster.store_types import EVENT, RESOURCES, resource_type, stored_type

#: Every kind whose objects are kept; events have no owners, and there are many of them.
KINDS = tuple(r.kind for r in RESOURCES if not r.create_only and stored_type(r) is r and r is not EVENT)


class GarbageCollector(Controller):
    """Keys are (kind, `namespace/name`)."""

    kinds = KINDS

    def observe(self, kind: str, old: Json | None, new: Json | None) -> None:
        """An owner that goes, or an object with owners."""
        if new is None:
            if old is not None:
                self._mark_dependents(old["metadata"]["uid"])
                self._mark_owners(old)
            return
        meta = new["metadata"]
        if "deletionTimestamp" in meta and meta.get("finalizers"):
            self.mark(_key(kind, new))
            self._mark_owners(new)
        if meta.get("ownerReferences") and (old is None or _owners(old) != _owners(new)):
            self.mark(_key(kind, new))

    def _mark_dependents(self, uid: str) -> None:
        for kind, obj in self.world.dependents(uid):
            self.mark(_key(kind, obj))

    def _mark_owners(self, obj: Json) -> None:
        # An owner that is being deleted in the foreground waits for this one.
        namespace = obj["metadata"].get("namespace") or ""
        for reference in _owners(obj):
            for space in {namespace, ""}:
                owner = self.world.get(reference["kind"], (space, reference["name"]))
                if owner is not None and owner["metadata"].get("finalizers"):
                    self.mark(_key(reference["kind"], owner))

    def reconcile(self, key: Key) -> None:
        """Delete it, let go of its dependents, or let it go."""
        kind, (namespace, _, name) = key[0], key[1].rpartition("/")
        obj = self.world.get(kind, (namespace, name))
        if obj is None:
            return
        if "deletionTimestamp" in obj["metadata"]:
            finalizers = obj["metadata"].get("finalizers") or ()
            if ORPHAN in finalizers:
                self._orphan(obj)
            elif FOREGROUND in finalizers:
                self._foreground(obj)
            return
        owners = _owners(obj)
        states = [(o, self._state(o, namespace)) for o in owners]
        gone = [o for o, state in states if state == "gone"]
        leaving = [o for o, state in states if state == "leaving"]
        if not owners or not (gone or leaving):
            return
        if len(gone) + len(leaving) < len(owners):
            left = [o for o, state in states if state == "there"]
            self.world.patch(obj, {"metadata": {"ownerReferences": left}})
        else:
            self.world.delete(obj, propagation="Foreground" if leaving else "Background")

    def _state(self, reference: Json, namespace: str) -> str:
        """there, gone, or leaving: it waits in the foreground for what it owns."""
        try:
            served = resource_type(reference["kind"]).api_version == reference.get("apiVersion")
        except KeyError:
            served = False
        if not served:
            # Nobody here can tell whether an object of a foreign kind exists.
            return "there"
        owner = self._find(reference, namespace)
        if owner is None or owner["metadata"]["uid"] != reference.get("uid"):
            return "gone"
        meta = owner["metadata"]
        waits = "deletionTimestamp" in meta and FOREGROUND in (meta.get("finalizers") or ())
        return "leaving" if waits else "there"

    def _find(self, reference: Json, namespace: str) -> Json | None:
        kind, name = reference["kind"], reference["name"]
        for space in (namespace, ""):
            known = self.world.get(kind, (space, name))
            if known is not None and known["metadata"]["uid"] == reference.get("uid"):
                return known
        # Kinds that are not watched, and news that are still on the way.
        try:
            found: Json = self.world.client.get(kind, name, namespace or None)
        except ApiError as e:
            if e.code != 404:
                raise
            return None
        return found

    def _foreground(self, obj: Json) -> None:
        uid = obj["metadata"]["uid"]
        blocking = False
        for kind, child in self.world.dependents(uid):
            reference = next(o for o in _owners(child) if o.get("uid") == uid)
            blocking = blocking or bool(reference.get("blockOwnerDeletion"))
            if "deletionTimestamp" not in child["metadata"]:
                self.mark(_key(kind, child))
        if not blocking:
            self._release(obj, FOREGROUND)

    def _orphan(self, obj: Json) -> None:
        uid = obj["metadata"]["uid"]
        for _, child in self.world.dependents(uid):
            left = [o for o in _owners(child) if o.get("uid") != uid]
            self.world.patch(child, {"metadata": {"ownerReferences": left or None}})
        self._release(obj, ORPHAN)

    def _release(self, obj: Json, finalizer: str) -> None:
        left = [f for f in obj["metadata"].get("finalizers") or () if f != finalizer]
        version = obj["metadata"]["resourceVersion"]
        self.world.patch(obj, {"metadata": {"finalizers": left or None, "resourceVersion": version}})


def _owners(obj: Json) -> list[Any]:
    return list(obj["metadata"].get("ownerReferences") or ())


def _key(kind: str, obj: Json) -> Key:
    namespace, name = key_of(obj)
    return kind, f"{namespace}/{name}"
