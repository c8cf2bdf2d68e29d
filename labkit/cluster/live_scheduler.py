"""The same engine against a live cluster: watches in, bindings out, real time."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from labkit.cluster.lease import LeaderElector
from labkit.cluster.live import LiveClient
from labkit.cluster.reflector import Reflector, Troubles
from labkit.config import SchedulerConfig
from labkit.engine.informer import ALL_KINDS
from labkit.engine.scheduler import Scheduler
from labkit.framework.clock import RealClock

#: Kinds without which nothing can be scheduled; the others may come late.
_ESSENTIAL = ("Node", "Pod")
_IDLE_SECONDS = 0.05


class LiveScheduler:
    """Runs until `stop()`; call `run()` on a thread of its own or the main one."""

    def __init__(
        self,
        client: LiveClient,
        config: SchedulerConfig,
        *,
        plugins: Iterable[Any] = (),
        metrics: Any = None,
        extenders: Iterable[Any] = (),
        identity: str | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`tell` gets what the user should know: an API server that refuses or is away, and that it is back."""
        self.config = config
        self.stopped = threading.Event()
        self.lost_leadership = False
        self._client = client
        self._wake = threading.Event()
        self._leads = threading.Event()
        self.scheduler = Scheduler(
            client,
            config,
            clock=RealClock(),
            plugins=plugins,
            trace="off",
            metrics=metrics,
            extenders=extenders,
        )
        self._troubles = Troubles(tell)
        self._reflectors = [
            Reflector(client, kind, self._notify, self.stopped, self._troubles) for kind in ALL_KINDS
        ]
        self._identity = identity or f"{socket.gethostname()}_{os.getpid()}"
        self.elector: LeaderElector | None = None

    def _notify(self, old: Any, new: Any) -> None:
        self.scheduler.notify(old, new)
        self._wake.set()

    @property
    def ready(self) -> bool:
        """The first lists have come in."""
        return all(r.synced.is_set() for r in self._reflectors)

    def run(self) -> None:
        """Watch, lead, schedule; returns after `stop()` or when leadership was lost."""
        for reflector in self._reflectors:
            reflector.thread.start()
        for reflector in self._reflectors:
            while not self.stopped.is_set() and not reflector.synced.wait(0.1):
                pass
        if self.config.leader_election.leader_elect and not self._lead():
            return
        while not self.stopped.is_set():
            if self.scheduler.schedule_one() is None:
                self._wake.wait(_IDLE_SECONDS)
                self._wake.clear()
        if self.elector is not None:
            self.elector.release()

    def _lead(self) -> bool:
        election = self.config.leader_election
        self.elector = LeaderElector(
            # One request that hangs must not outlast the lease.
            self._client.timed(float(election.renew_deadline) / 2),
            self._identity,
            namespace=election.resource_namespace,
            name=election.resource_name,
            lease_duration=float(election.lease_duration),
            renew_deadline=float(election.renew_deadline),
            retry_period=float(election.retry_period),
            on_lost=self._lost,
            troubles=self._troubles,
        )
        waiting = threading.Thread(target=self._pump_while_waiting, daemon=True)
        waiting.start()
        led = self.elector.acquire(self.stopped)
        self._leads.set()
        waiting.join()
        return led

    def _pump_while_waiting(self) -> None:
        while not self._leads.wait(_IDLE_SECONDS) and not self.stopped.is_set():
            self.scheduler.pump()

    def _lost(self) -> None:
        self.lost_leadership = True
        self.stop()

    def stop(self) -> None:
        """End; the lease is released by `run`."""
        self.stopped.set()
        self._wake.set()


class HealthServer:
    """`/healthz`, `/readyz` and `/metrics` of a live scheduler."""

    def __init__(self, scheduler: LiveScheduler, host: str, port: int, metrics: Any = None) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.split("?", 1)[0]
                status, body = 200, b"ok"
                if path == "/readyz" and not scheduler.ready:
                    status, body = 503, b"the first lists have not come in yet"
                elif path == "/metrics" and metrics is not None:
                    body = metrics.render()
                elif path not in ("/healthz", "/livez", "/readyz"):
                    status, body = 404, b"not found"
                self.send_response(status)
                self.send_header("Content-Type", "text/plain; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, name="health", daemon=True).start()

    def stop(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
