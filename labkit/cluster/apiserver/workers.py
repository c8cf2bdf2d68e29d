"""What a served cluster without controllers and kubelet still needs: namespaces that end, pods that end."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from labkit.cluster.store import Store
from labkit.cluster.store_deletion import finalize_namespace
from labkit.cluster.store_errors import ApiError
from labkit.cluster.store_times import seconds_of


class Worker:
    """A thread that runs `step` when it is woken, and every `period` seconds."""

    period = 1.0

    def __init__(self, store: Store) -> None:
        self.store = store
        self._wake = threading.Event()
        self._ended = False
        self._unsubscribe = store.subscribe(self._note)
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)
        self._thread.start()

    def _note(self, kind: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        """Wake up if the change concerns this worker."""

    def _run(self) -> None:
        while not self._ended:
            self._wake.wait(self.period)
            self._wake.clear()
            if not self._ended:
                # What is refused now is tried again at the next step.
                with contextlib.suppress(ApiError):
                    self.step()

    def step(self) -> None:
        """Do what there is to do."""

    def stop(self) -> None:
        """End the thread."""
        self._ended = True
        self._unsubscribe()
        self._wake.set()
        self._thread.join(timeout=5)


class NamespaceCleaner(Worker):
    """Empties namespaces that are being deleted, then removes them."""

    def __init__(self, store: Store) -> None:
        # What was being deleted when the last server of this data was killed still is.
        namespaces = store.objects("Namespace").values()
        self._pending = {o["metadata"]["name"] for o in namespaces if "deletionTimestamp" in o["metadata"]}
        super().__init__(store)

    def _note(self, kind: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        if new is not None and new.get("kind") == "Namespace" and "deletionTimestamp" in new["metadata"]:
            self._pending.add(new["metadata"]["name"])
            self._wake.set()
        elif (
            kind == "DELETED"
            and self._pending
            and old is not None
            and old["metadata"].get("namespace") in self._pending
        ):
            self._wake.set()

    def step(self) -> None:
        with self.store.lock:
            names = sorted(self._pending)
        for name in names:
            if finalize_namespace(self.store, name):
                self._pending.discard(name)


class PodReaper(Worker):
    """Removes pods whose grace period is over, as their kubelet would."""

    period = 0.5

    def __init__(self, store: Store) -> None:
        pods = store.objects("Pod").items()
        self._dying = {key for key, pod in pods if "deletionTimestamp" in pod["metadata"]}
        super().__init__(store)

    def _note(self, kind: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        if new is not None and new.get("kind") == "Pod" and "deletionTimestamp" in new["metadata"]:
            self._dying.add(f"{new['metadata']['namespace']}/{new['metadata']['name']}")

    def step(self) -> None:
        with self.store.lock:
            keys = sorted(self._dying)
        for key in keys:
            pod = self.store.objects("Pod").get(key)
            if pod is None or "deletionTimestamp" not in pod["metadata"]:
                self._dying.discard(key)
            elif seconds_of(pod["metadata"]["deletionTimestamp"]) <= self.store.clock.now():
                meta = pod["metadata"]
                try:
                    self.store.delete("Pod", meta["name"], meta["namespace"], 0, {"uid": meta["uid"]})
                except ApiError:
                    continue
