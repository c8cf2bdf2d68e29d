"""Leader election over a Lease (spec 15 §4): acquire, renew, lose, release.

`LeaseHolder` is the protocol, one try at a time, for any clock; `LeaderElector` runs it on threads in real time.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

from labkit.cluster.store_times import format_micro_time

Json = dict[str, Any]
#: A contender pauses for the retry period times 1..2.2 after each try.
JITTER = 1.2


class LeaseHolder:
    """One contender for the lease `namespace/name`. `now()` gives seconds since the epoch, for the record.

    `elapsed()` is this machine's own clock in seconds, which alone decides whether another one's lease has run out:
    by default a monotonic one, so that a clock that is set does no harm.
    """

    def __init__(
        self,
        client: Any,
        identity: str,
        *,
        namespace: str = "kube-system",
        name: str = "kube-scheduler",
        lease_duration: float = 15.0,
        now: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self.identity = identity
        self._namespace = namespace
        self._name = name
        self._lease_duration = lease_duration
        self._now = now
        self._elapsed = elapsed
        self._observed: tuple[Any, float] = (None, 0.0)
        #: Who held the lease when it was last looked at.
        self.holder = ""
        #: Why the last attempt failed, when it was not for another holder.
        self.trouble = ""

    def attempt(self) -> bool:
        """Acquire or renew; False when another one holds the lease, or the API refuses or is away."""
        self.trouble = ""
        try:
            held = self._attempt()
        except Exception as e:
            self.trouble = str(e) or type(e).__name__
            return False
        if held:
            self.holder = self.identity
        return held

    def release(self) -> None:
        """Give the lease up, so that another one need not wait for it to run out."""
        try:
            lease = self._client.get("Lease", self._name, self._namespace)
            if lease["spec"].get("holderIdentity") == self.identity:
                now = format_micro_time(self._now())
                lease["spec"].update(
                    holderIdentity="", leaseDurationSeconds=1, acquireTime=now, renewTime=now
                )
                self._client.update(lease)
        except Exception:
            # It runs out by itself.
            return

    def _attempt(self) -> bool:
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
            self._observed = (spec, self._elapsed())
        self.holder = holder = spec.get("holderIdentity") or ""
        mine = holder == self.identity
        duration = float(spec.get("leaseDurationSeconds") or self._lease_duration)
        if holder and not mine and self._elapsed() - self._observed[1] < duration:
            return False
        lease["spec"] = self._spec(spec, taken=not mine)
        self._client.update(lease)
        return True

    def _spec(self, old: Json, *, taken: bool) -> Json:
        now = format_micro_time(self._now())
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self._lease_duration),
            "acquireTime": now if taken else old.get("acquireTime", now),
            "renewTime": now,
            "leaseTransitions": int(old.get("leaseTransitions") or 0) + (1 if taken and old else 0),
        }


class LeaderElector:
    """Holds `namespace/name` for `identity`. Times in seconds.

    `acquire()` blocks until this one leads; afterwards a thread renews, and `on_lost` is called when it could not
    for `renew_deadline`. Another holder's lease is taken over once it has not changed for `lease_duration`.
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
        troubles: Any = None,
    ) -> None:
        self._troubles = troubles
        self._lease = LeaseHolder(
            client, identity, namespace=namespace, name=name, lease_duration=lease_duration
        )
        self.identity = identity
        self._renew_deadline = renew_deadline
        self._retry_period = retry_period
        self._on_lost = on_lost
        self._stopped = threading.Event()
        self.leading = False

    def acquire(self, stopped: threading.Event) -> bool:
        """Wait until this one leads; False when `stopped` was set first."""
        # Contenders must not try in step; nothing else depends on the pause.
        pause = random.Random(self.identity)
        while not stopped.is_set():
            if self._attempt():
                self.leading = True
                threading.Thread(target=self._renew, name="lease", daemon=True).start()
                return True
            stopped.wait(self._retry_period * (1 + JITTER * pause.random()))
        return False

    def _attempt(self) -> bool:
        held = self._lease.attempt()
        if self._troubles is not None:
            if self._lease.trouble:
                self._troubles.report("the lease", self._lease.trouble)
            else:
                self._troubles.over("the lease")
        return held

    def release(self) -> None:
        """Give the lease up, so that another one need not wait for it to run out."""
        self._stopped.set()
        if self.leading:
            self.leading = False
            self._lease.release()

    def _renew(self) -> None:
        last = time.monotonic()
        while not self._stopped.wait(self._retry_period):
            if self._attempt():
                last = time.monotonic()
            elif time.monotonic() - last > self._renew_deadline:
                self.leading = False
                self._on_lost()
                return
