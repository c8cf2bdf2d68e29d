"""A live cluster in a notebook: what `Lab` shows of its own cluster, of one behind a kubeconfig, in real time."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.cluster.live import LiveClient, connect
from labkit.cluster.live_scheduler import LiveScheduler
from labkit.cluster.store_errors import ApiError
from labkit.config import load_config
from labkit.engine.informer import ALL_KINDS
from labkit.errors import InputError, LabError
from labkit.i18n import t
from labkit.objects.meta import RawObject
from labkit.reading import read_objects

if TYPE_CHECKING:
    from labkit.lab import Lab

_PAUSE_SECONDS = 0.05
_STOP_SECONDS = 20.0


class LiveCluster:
    """The cluster of a kubeconfig, to read and to change. Refusals of its API are ApiError."""

    def __init__(self, client: LiveClient) -> None:
        self.client = client

    @classmethod
    def connect(cls, kubeconfig: str | Path | None = None, *, context: str | None = None) -> LiveCluster:
        """The cluster of `kubeconfig` (default: $KUBECONFIG, ~/.kube/config). LabError when it cannot be reached."""
        client = connect(None if kubeconfig is None else str(kubeconfig), context=context)
        try:
            client.list("Namespace")
        except ConnectionError as e:
            raise LabError(
                t(f"the cluster does not answer: {e}", f"集群没有响应：{e}"),
                hint=t(
                    "is it running? `labkit apiserver` starts one",
                    "它在运行吗？`labkit apiserver` 可以启动一个",
                ),
            ) from e
        return cls(client)

    # --- reading --------------------------------------------------------------------------------------------

    def look(self, kind: str, namespace: str | None = None) -> list[RawObject]:
        """All objects of a kind, ordered by namespace and name."""
        items, _ = self.client.list(kind, namespace)
        return sorted(items, key=lambda o: (o["metadata"].get("namespace", ""), o["metadata"]["name"]))

    def nodes(self) -> list[RawObject]:
        """The nodes."""
        return self.look("Node")

    def pods(self, namespace: str | None = None) -> list[RawObject]:
        """The pods, of one namespace or of all."""
        return self.look("Pod", namespace)

    def where(self, namespace: str | None = "default") -> dict[str, str | None]:
        """Pod -> its node."""
        return {p["metadata"]["name"]: p["spec"].get("nodeName") for p in self.pods(namespace)}

    def events(self, pod: str | None = None, namespace: str = "default") -> list[RawObject]:
        """The events of a namespace in the form of events.k8s.io (`regarding`, `note`), oldest first; of one pod if named."""
        found = [_event(e) for e in self.client.list("Event", namespace)[0]]
        return sorted(
            (e for e in found if pod is None or e["regarding"].get("name") == pod),
            key=lambda e: (str(e.get("eventTime")), e["metadata"]["name"]),
        )

    def lab(self, *, config: Any = None, plugins: Iterable[Any] = ()) -> Lab:
        """A lab with a copy of everything that a scheduler looks at: to play what-if, and nothing happens out there."""
        from labkit.lab import Lab

        objects: list[RawObject] = []
        for kind in ALL_KINDS:
            with contextlib.suppress(ApiError):
                # A kind that this cluster does not serve has no objects.
                objects += [_copied(o) for o in self.client.list(kind)[0]]
        known = [o for o in objects if not _bootstrapped(o)]
        return Lab(known, config=config, plugins=plugins)

    # --- writing --------------------------------------------------------------------------------------------

    def apply(self, source: Any) -> list[str]:
        """Create or change objects (`source` as in `Lab`); returns `Kind namespace/name created|changed` lines.

        InputError names the object that the API refuses, and why.
        """
        return [self._apply(document.raw) for document in read_objects(source)]

    def _apply(self, raw: RawObject) -> str:
        meta = raw.get("metadata") or {}
        kind, name = str(raw.get("kind", "")), str(meta.get("name", ""))
        namespace = meta.get("namespace")
        try:
            try:
                made, what = self.client.create(raw), "created"
            except ApiError as e:
                if e.code != 409 or not name:
                    raise
                made, what = (
                    self.client.patch(kind, name, namespace or "default", raw, "strategic"),
                    "changed",
                )
        except ApiError as e:
            raise InputError(f"{kind} {name}: {e.message}") from e
        shown = made["metadata"]["name"]
        where = f"{made['metadata']['namespace']}/" if made["metadata"].get("namespace") else ""
        return f"{kind} {where}{shown} {what}"

    def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        """Delete one object. ApiError 404."""
        self.client.delete(kind, name, namespace)

    # --- running --------------------------------------------------------------------------------------------

    def wait(self, condition: Callable[[LiveCluster], Any], seconds: float = 20) -> bool:
        """Wait until `condition(cluster)` is true, for so many seconds at most; whether it came true."""
        deadline = time.monotonic() + seconds
        while not condition(self):
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE_SECONDS)
        return True

    @contextlib.contextmanager
    def scheduler(self, *, config: Any = None, plugins: Iterable[Any] = ()) -> Iterator[LiveScheduler]:
        """Run the lab's scheduler on this cluster while the `with` block lasts; without leader election.

        `config` and `plugins` as in `Lab`. It takes the pods whose `schedulerName` is one of its profiles.
        """
        loaded = load_config(config)
        loaded.leader_election.leader_elect = False
        running = LiveScheduler(self.client, loaded, plugins=plugins)
        thread = threading.Thread(target=running.run, daemon=True, name="labkit-scheduler")
        thread.start()
        try:
            yield running
        finally:
            running.stop()
            thread.join(_STOP_SECONDS)

    def __repr__(self) -> str:
        pods = self.pods()
        placed = sum(bool(p["spec"].get("nodeName")) for p in pods)
        return f"<LiveCluster: {len(self.nodes())} nodes, {placed} pods placed, {len(pods) - placed} waiting>"


def _event(raw: RawObject) -> RawObject:
    """Either API group's event, under the names of events.k8s.io."""
    return {
        **raw,
        "regarding": raw.get("regarding") or raw.get("involvedObject") or {},
        "note": raw.get("note") or raw.get("message") or "",
        "eventTime": raw.get("eventTime") or raw.get("firstTimestamp") or raw.get("deprecatedFirstTimestamp"),
    }


def _copied(obj: RawObject) -> RawObject:
    """Without what only the server of the original can say."""
    meta = {
        k: v
        for k, v in obj["metadata"].items()
        if k not in ("resourceVersion", "managedFields", "ownerReferences")
    }
    return {**obj, "metadata": meta}


def _bootstrapped(obj: RawObject) -> bool:
    """What every new cluster makes itself."""
    name = obj["metadata"]["name"]
    if obj["kind"] == "PriorityClass":
        return bool(name.startswith("system-"))
    return obj["kind"] == "Namespace" and name in ("default", "kube-system", "kube-public", "kube-node-lease")
