"""ControllerRevisions: the pod templates that a StatefulSet or DaemonSet has had."""

from __future__ import annotations

import copy

from labkit.cluster.controllers.pods import template_hash
from labkit.cluster.controllers.world import Json, World, owner_reference

HASH = "controller-revision-hash"


# Revisions are strategic merge patches (`kubectl rollout undo` applies them): this one is no merge.
_REPLACE = {"$patch": "replace"}


def template_of(revision: Json) -> Json:
    """A copy of the pod template that a revision keeps."""
    kept = revision["data"]["spec"]["template"]
    return copy.deepcopy({k: v for k, v in kept.items() if k not in _REPLACE})


def hash_of(obj: Json) -> str:
    """By which a pod and its revision know each other; empty without."""
    return str((obj["metadata"].get("labels") or {}).get(HASH, ""))


class Revisions:
    """Finds or makes the revision of a set's present template, and keeps the history short."""

    def __init__(self, world: World) -> None:
        self._world = world

    def of(self, obj: Json) -> tuple[Json, Json]:
        """(the revision that its pods have, the one that they are to get)."""
        known = sorted(self._world.owned(obj, "ControllerRevision"), key=_number)
        template = obj["spec"]["template"]
        update = next((r for r in known if template_of(r) == template), None)
        highest = _number(known[-1]) if known else 0
        if update is None:
            update = self._create(obj, template, highest + 1)
        elif _number(update) < highest:
            # An old template is wanted again.
            update = self._world.patch(update, {"revision": highest + 1})
        name = (obj.get("status") or {}).get("currentRevision")
        current = next((r for r in known if r["metadata"]["name"] == name), update)
        self._forget(obj, known, {current["metadata"]["name"], update["metadata"]["name"]})
        return current, update

    def _create(self, obj: Json, template: Json, number: int) -> Json:
        meta, name = obj["metadata"], template_hash(template)
        labels = {**(obj["spec"]["selector"].get("matchLabels") or {}), HASH: name}
        made: Json = self._world.client.create(
            {
                "apiVersion": "apps/v1",
                "kind": "ControllerRevision",
                "metadata": {
                    "name": f"{meta['name']}-{name}",
                    "namespace": meta["namespace"],
                    "labels": labels,
                    "ownerReferences": [owner_reference(obj)],
                },
                "data": {"spec": {"template": {**copy.deepcopy(template), **_REPLACE}}},
                "revision": number,
            }
        )
        return made

    def _forget(self, obj: Json, known: list[Json], used: set[str]) -> None:
        limit = obj["spec"].get("revisionHistoryLimit")
        pods = self._world.owned(obj, "Pod")
        used |= set(map(hash_of, pods))
        # Pods of a StatefulSet name the revision, those of a DaemonSet only its hash.
        idle = [r for r in known if not used & {r["metadata"]["name"], hash_of(r)}]
        surplus = len(idle) - (10 if limit is None else int(limit))
        for one in idle[: max(0, surplus)]:
            self._world.delete(one)


def _number(revision: Json) -> int:
    return int(revision.get("revision") or 0)
