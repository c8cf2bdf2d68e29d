"""A scheduler that runs: its engine, its client, and its part in an election."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from labkit.cluster.client import StoreClient
from labkit.cluster.lease import JITTER, LeaseHolder
from labkit.cluster.store import Store
from labkit.cluster.store_errors import ApiError
from labkit.config import load_config
from labkit.engine.scheduler import Scheduler
from labkit.errors import LabError
from labkit.framework.clock import VirtualClock
from labkit.i18n import t
from labkit.reading import parse_duration
from labkit.several_members import Member

#: (kind, pod, node, text) of an entry.
Said = Callable[[str, str, str, str], None]
#: Seconds; kube-scheduler's defaults.
RETRY, RENEW_DEADLINE = 2.0, 10.0


class _Client:
    """A member's client: what it binds is written into the log."""

    def __init__(self, client: StoreClient, say: Said) -> None:
        self._client = client
        self._say = say

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def bind(self, namespace: str, name: str, uid: str | None, node: str) -> None:
        """Bind, and say how it went."""
        pod = f"{namespace}/{name}"
        self._say("decided", pod, node, "")
        try:
            self._client.bind(namespace, name, uid, node)
        except ApiError as e:
            self._say("conflict", pod, node, e.message)
            raise
        self._say("bound", pod, node, "")


class Process:
    """A member that runs on a store. `say` hears of its bindings, of its election and of its end.

    LabError when its configuration has no profile of its name.
    """

    def __init__(
        self, member: Member, store: Store, clock: VirtualClock, seed: int, number: int, say: Said
    ) -> None:
        self.member = member
        self.delay = parse_duration(member.delay)
        self.alive = self.leads = True
        self.lease: LeaseHolder | None = None
        self._clock = clock
        self._say = say
        self._told_holder = ""
        self._renewed = 0.0
        self._pauses = random.Random(f"{seed}/{member.identity}")
        self.scheduler = Scheduler(
            _Client(StoreClient(store, field_manager="kube-scheduler"), say),
            load_config(member.config) if member.config is not None else _config(member.name),
            clock=clock,
            plugins=member.plugins,
            seed=seed + number,
        )
        if member.name not in self.scheduler.frameworks:
            raise LabError(
                t(
                    f"member {member.identity}: its config has no profile {member.name!r}",
                    f"成员 {member.identity}：它的配置里没有名为 {member.name!r} 的 profile",
                ),
                hint=t("profiles: ", "已有的 profile：") + ", ".join(self.scheduler.frameworks),
            )
        self.scheduler.load()
        if member.leader_election:
            self.leads = False
            self.lease = LeaseHolder(
                StoreClient(store, field_manager="labkit"),
                member.identity,
                name=member.lease or member.name,
                now=clock.now,
                elapsed=clock.now,
            )

    @property
    def works(self) -> bool:
        """Whether it tries pods."""
        return self.alive and self.leads

    def lead_or_wait(self) -> None:
        """Try to get or to renew the lease, now and again after a pause; without election nothing happens."""
        if self.lease is None or not self.alive:
            return
        now = self._clock.now()
        if self.lease.attempt():
            self._renewed = now
            if not self.leads:
                self.leads = True
                self._say("leading", "", "", f"{self.lease.identity} became leader")
        elif self.leads and now - self._renewed > RENEW_DEADLINE:
            self.leads = self.alive = False
            self._say("stopped", "", "", "leader election lost")
            return
        elif not self.leads and self.lease.holder != self._told_holder:
            self._told_holder = self.lease.holder
            self._say("standing-by", "", "", f"{self.lease.holder} leads")
        pause = RETRY if self.leads else RETRY * (1 + JITTER * self._pauses.random())
        self._clock.call_at(now + pause, self.lead_or_wait)

    def end(self, *, release: bool) -> None:
        """Stop; with `release` the lease is given back, without it runs out."""
        if not self.alive:
            return
        self.alive = False
        if release and self.leads and self.lease is not None:
            self.lease.release()
        self.leads = False
        self._say("stopped", "", "", "released its lease" if release and self.lease else "")


def _config(name: str) -> Any:
    return load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": name}],
        }
    )
