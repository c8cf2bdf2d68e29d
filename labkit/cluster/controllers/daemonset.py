"""DaemonSet: one pod on each node that its template allows, replaced node by node when the template changes."""

from __future__ import annotations

from typing import Any

from labkit.cluster.controllers.daemon_pods import Placement, daemon_pod, limits, node_of
from labkit.cluster.controllers.pods import available_in, is_ready, phase
from labkit.cluster.controllers.revisions import Revisions, hash_of
from labkit.cluster.controllers.world import Controller, Json, Key, World, key_of
from labkit.cluster.store_errors import ApiError
from labkit.cluster.store_times import seconds_of
from labkit.engine.informer import typed

SOURCE = "daemonset-controller"
#: Seconds before the first replacement of a pod that failed, doubled with each further one.
_FIRST_BACK_OFF, _LONGEST_BACK_OFF = 1.0, 900.0


class DaemonSetController(Controller):
    """RollingUpdate (maxUnavailable or maxSurge) and OnDelete. The scheduler places the pods, not the controller."""

    kinds = ("DaemonSet", "Pod", "Node", "ControllerRevision")

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._revisions = Revisions(world)
        self._nodes: dict[str, Any] = {}
        #: (uid of a set, node) -> (seconds waited last, when the next pod may come).
        self._failures: dict[tuple[str, str], tuple[float, float]] = {}

    def observe(self, kind: str, old: Json | None, new: Json | None) -> None:
        """A set, a pod of one, or a node that came, went or changed in what placement looks at."""
        if kind == "Pod":
            self.mark_owner("DaemonSet", (old, new))
        elif kind == "DaemonSet" and new is not None:
            self.mark(key_of(new))
        elif kind == "Node":
            if new is None and old is not None:
                self._nodes.pop(old["metadata"]["name"], None)
            elif new is not None:
                self._nodes[new["metadata"]["name"]] = typed(new, "Node")
            if old is None or new is None or _looks(old) != _looks(new):
                for obj in self.world.all("DaemonSet"):
                    self.mark(key_of(obj))

    def reconcile(self, key: Key) -> None:
        """A pod on each node and none elsewhere, then the update, then status."""
        obj = self.world.get("DaemonSet", key)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return
        revision = hash_of(self._revisions.of(obj)[1])
        placed: dict[str, list[Json]] = {}
        for pod in sorted(self.world.owned(obj, "Pod"), key=_age):
            placed.setdefault(node_of(pod), []).append(pod)
        placement = Placement(obj)
        wanted = {name: placement.of(node) for name, node in sorted(self._nodes.items())}
        count = sum(make for make, _ in wanted.values())
        surge, unavailable = limits(obj, count)
        missing, surplus = self._manage(obj, placed, wanted, revision, surge)
        if (obj["spec"].get("updateStrategy") or {}).get("type") != "OnDelete":
            here = {name: placed.get(name, []) for name, (make, _) in wanted.items() if make}
            if surge:
                more, less = self._surge(obj, here, revision, surge)
                missing += more
            else:
                less = self._replace(obj, here, revision, unavailable)
            surplus += less
        try:
            for pod in surplus:
                self._delete(obj, pod)
            for name in missing:
                self._create(obj, name, revision)
        finally:
            self._status(obj, placed, wanted, revision)

    # --- one pod on each node -----------------------------------------------------------------------------

    def _manage(
        self,
        obj: Json,
        placed: dict[str, list[Json]],
        wanted: dict[str, tuple[bool, bool]],
        revision: str,
        surge: int,
    ) -> tuple[list[str], list[Json]]:
        """(nodes to make a pod for, pods to delete)."""
        missing = [name for name, (make, _) in wanted.items() if make and name not in placed]
        surplus: list[Json] = []
        for name, pods in placed.items():
            alive = [p for p in pods if "deletionTimestamp" not in p["metadata"]]
            if name not in wanted:
                # Bound ones are the pod collector's when their node is gone; the others would wait for ever.
                surplus += [p for p in alive if not p["spec"].get("nodeName")]
            elif not wanted[name][1]:
                surplus += alive
            else:
                ended = [p for p in alive if phase(p) in ("Succeeded", "Failed")]
                surplus += [p for p in ended if self._may_replace(obj, p, name)]
                running = [p for p in alive if phase(p) not in ("Succeeded", "Failed")]
                surplus += self._doubles(obj, running, revision) if surge else running[1:]
        return missing, surplus

    def _may_replace(self, obj: Json, pod: Json, node: str) -> bool:
        if phase(pod) == "Succeeded":
            note = f"Found succeeded daemon pod {_full_name(pod)} on node {node}, will try to delete it"
            self.world.event(obj, "SucceededDaemonPod", note, SOURCE)
            return True
        key, now = (obj["metadata"]["uid"], node), self.world.now
        waited, until = self._failures.get(key, (0.0, 0.0))
        if now < until:
            self.mark_later(key_of(obj), until - now)
            return False
        # A pod that has lived for as long as the longest wait makes up for those before it.
        wait = min(waited * 2, _LONGEST_BACK_OFF) if now < until + _LONGEST_BACK_OFF else 0.0
        wait = max(wait, _FIRST_BACK_OFF)
        self._failures[key] = wait, now + wait
        note = f"Found failed daemon pod {_full_name(pod)} on node {node}, will try to kill it"
        self.world.event(obj, "FailedDaemonPod", note, SOURCE, "Warning")
        return True

    def _doubles(self, obj: Json, running: list[Json], revision: str) -> list[Json]:
        """With a surge a node has an old and a new pod for a while: the old one goes when it is of no more use."""
        new = [p for p in running if hash_of(p) == revision]
        old = [p for p in running if hash_of(p) != revision]
        surplus = [*new[1:], *old[1:]]
        if new and old and (not is_ready(old[0]) or self._available(obj, new[0])):
            surplus.append(old[0])
        return surplus

    # --- updates --------------------------------------------------------------------------------------------

    def _replace(self, obj: Json, here: dict[str, list[Json]], revision: str, most: int) -> list[Json]:
        """Old pods to delete so that on no more than `most` nodes the daemon is away; those that are away go first."""
        away = 0
        gone: list[Json] = []
        candidates: list[Json] = []
        for pods in here.values():
            new, old = _new_and_old(pods, revision)
            if bool(new) == bool(old) or len(new) + len(old) > 1:
                away += 1
            elif new:
                away += not self._available(obj, new[0])
            elif self._available(obj, old[0]):
                candidates.append(old[0])
            else:
                away += 1
                gone.append(old[0])
        return [*gone, *candidates[: max(0, most - away)]]

    def _surge(
        self, obj: Json, here: dict[str, list[Json]], revision: str, most: int
    ) -> tuple[list[str], list[Json]]:
        """(nodes that get a second, new pod, old pods whose successor is available)."""
        double = 0
        at_once: list[str] = []
        candidates: list[str] = []
        gone: list[Json] = []
        for name, pods in here.items():
            new, old = _new_and_old(pods, revision)
            if len(new) > 1 or len(old) > 1:
                double += 1
            elif old and new:
                if self._available(obj, new[0]):
                    gone.append(old[0])
                else:
                    double += 1
            elif old:
                (candidates if self._available(obj, old[0]) else at_once).append(name)
        return [*at_once, *candidates[: max(0, most - double)]], gone

    def _available(self, obj: Json, pod: Json) -> bool:
        left = available_in(pod, _wait(obj), self.world.now)
        if left:
            self.mark_later(key_of(obj), left)
        return left == 0

    # --- writing ----------------------------------------------------------------------------------------------

    def _create(self, obj: Json, node: str, revision: str) -> None:
        try:
            made = self.world.client.create(daemon_pod(obj, node, revision))
        except ApiError as e:
            self.world.event(obj, "FailedCreate", f"Error creating: {e.message}", SOURCE, "Warning")
            raise
        self.world.event(obj, "SuccessfulCreate", f"Created pod: {made['metadata']['name']}", SOURCE)

    def _delete(self, obj: Json, pod: Json) -> None:
        self.world.delete(pod)
        self.world.event(obj, "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}", SOURCE)

    def _status(
        self, obj: Json, placed: dict[str, list[Json]], wanted: dict[str, tuple[bool, bool]], revision: str
    ) -> None:
        should = [name for name, (make, _) in wanted.items() if make]
        first = [placed[name][0] for name in should if name in placed]
        available = sum(self._available(obj, p) for p in first)
        self.world.set_status(
            obj,
            {
                "currentNumberScheduled": len(first),
                "desiredNumberScheduled": len(should),
                "numberMisscheduled": sum(n in placed for n, (make, _) in wanted.items() if not make),
                "numberReady": sum(map(is_ready, first)),
                "updatedNumberScheduled": sum(hash_of(p) == revision for p in first) or None,
                "numberAvailable": available or None,
                "numberUnavailable": len(should) - available or None,
                "observedGeneration": obj["metadata"].get("generation", 1),
            },
        )


def _looks(node: Json) -> tuple[Any, Any]:
    return node["metadata"].get("labels") or {}, (node.get("spec") or {}).get("taints") or []


def _new_and_old(pods: list[Json], revision: str) -> tuple[list[Json], list[Json]]:
    alive = [p for p in pods if "deletionTimestamp" not in p["metadata"]]
    return [p for p in alive if hash_of(p) == revision], [p for p in alive if hash_of(p) != revision]


def _wait(obj: Json) -> float:
    return float(obj["spec"].get("minReadySeconds") or 0)


def _age(pod: Json) -> tuple[bool, float, str]:
    """Those that have a node first, then the oldest."""
    meta = pod["metadata"]
    return not pod["spec"].get("nodeName"), seconds_of(meta["creationTimestamp"]), meta["name"]


def _full_name(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
