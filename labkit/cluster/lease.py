"""Leader election over a Lease (spec 15, spec 16): acquire, renew, lose, release."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]


def _now_text() -> str:
    return datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class LeaderElector:
    """Holds `namespace/name` for `identity`. Times in seconds.

    `acquire()` blocks until this one leads; afterwards a thread renews, and `on_lost` is called when it could not
    for `renew_deadline`. Another holder's lease is taken over once it has not changed for `lease_duration`, by
    this machine's own monotonic clock.
    """

    def __init__(
        self,
        client: Any,
        identity: str,
        *,
        namespace: str = "kube-system",
        name: str = "kube-scheduler",
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self.identity = identity
        self._namespace = namespace
        self._name = name
        self._lease_duration = lease_duration
        self._renew_deadline = renew_deadline
        self._retry_period = retry_period
        self._on_lost = on_lost
        self._observed: tuple[Any, float] = (None, 0.0)
        self._stopped = threading.Event()
        self.leading = False

    def acquire(self, stopped: threading.Event) -> bool:
        """Wait until this one leads; False when `stopped` was set first."""
        while not stopped.is_set():
            if self._try():
                self.leading = True
                threading.Thread(target=self._renew, name="lease", daemon=True).start()
                return True
            stopped.wait(self._retry_period)
        return False

    def release(self) -> None:
        """Give the lease up, so that another one need not wait for it to run out."""
        self._stopped.set()
        if not self.leading:
            return
        self.leading = False
        try:
            lease = self._client.get("Lease", self._name, self._namespace)
            if lease["spec"].get("holderIdentity") == self.identity:
                lease["spec"].update(holderIdentity="", leaseDurationSeconds=1, renewTime=_now_text())
                self._client.update(lease)
        except Exception:
            # It runs out by itself.
            return

    def _renew(self) -> None:
        last = time.monotonic()
        while not self._stopped.wait(self._retry_period):
            if self._try():
                last = time.monotonic()
            elif time.monotonic() - last > self._renew_deadline:
                self.leading = False
                self._on_lost()
                return

    def _try(self) -> bool:
        try:
            return self._try_once()
        except Exception:
            return False

    def _try_once(self) -> bool:
        try:
            lease = self._client.get("Lease", self._name, self._namespace)
        except Exception as e:
            if getattr(e, "code", None) != 404:
                raise
            self._client.create(
                {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": self._name, "namespace": self._namespace},
                    "spec": self._spec({}, taken=True),
                }
            )
            return True
        spec = lease.get("spec") or {}
        if self._observed[0] != spec:
            self._observed = (spec, time.monotonic())
        holder = spec.get("holderIdentity") or ""
        mine = holder == self.identity
        duration = float(spec.get("leaseDurationSeconds") or self._lease_duration)
        if holder and not mine and time.monotonic() - self._observed[1] < duration:
            return False
        lease["spec"] = self._spec(spec, taken=not mine)
        self._client.update(lease)
        return True

    def _spec(self, old: Json, *, taken: bool) -> Json:
        now = _now_text()
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self._lease_duration),
            "acquireTime": now if taken else old.get("acquireTime", now),
            "renewTime": now,
            "leaseTransitions": int(old.get("leaseTransitions") or 0) + (1 if taken and old else 0),
        }
