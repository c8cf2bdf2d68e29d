"""Talks to the API server's application in-process: no socket, the same code from the request on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from labkit.cluster.apiserver.app import ApiServer
from labkit.cluster.apiserver.auth import ADMIN, Authenticator, User
from labkit.cluster.store import Store

TOKEN = "secret"
VIEWER = User("viewer", ("system:authenticated",))


class Clock:
    """A clock that a test sets."""

    def __init__(self, now: float = 1_780_000_000.0) -> None:
        self.time = now

    def now(self) -> float:
        return self.time


class Answer:
    """Status, headers and body of an answer."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.body.splitlines()]


class Api:
    """One application over one store."""

    def __init__(self, store: Store | None = None) -> None:
        self.store = store or Store(Clock())
        self.app = ApiServer(self.store, Authenticator({TOKEN: ADMIN, "viewer-token": VIEWER}))

    def call(
        self,
        method: str,
        url: str,
        body: Any = None,
        content_type: str | None = None,
        accept: str = "application/json",
        token: str | None = TOKEN,
        headers: Iterable[tuple[str, str]] = (),
    ) -> Answer:
        """Send one request and read the whole answer."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        if isinstance(body, str):
            data = body.encode()
        sent = {"accept": accept, "user-agent": "tests/1", **dict(headers)}
        if token is not None:
            sent["authorization"] = f"Bearer {token}"
        if content_type or body is not None:
            sent["content-type"] = content_type or "application/json"
        return asyncio.run(self._call(method, url, data, sent))

    async def _call(self, method: str, url: str, data: bytes, headers: dict[str, str]) -> Answer:
        parts = urlsplit(url)
        got: list[dict[str, Any]] = []
        pending = [{"type": "http.request", "body": data, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if pending:
                return pending.pop()
            await asyncio.sleep(3600)
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            got.append(message)

        self.app.hub = None  # each call has an event loop of its own
        scope = {
            "type": "http",
            "method": method,
            "path": parts.path,
            "query_string": parts.query.encode(),
            "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
            "client": ("127.0.0.1", 1),
        }
        await self.app(scope, receive, send)
        answered = {k.decode(): v.decode() for k, v in got[0]["headers"]}
        return Answer(got[0]["status"], answered, b"".join(m.get("body", b"") for m in got[1:]))


def pod(
    name: str = "p", *, namespace: str | None = None, labels: dict[str, str] | None = None, **spec: Any
) -> Any:
    """A pod manifest."""
    meta: dict[str, Any] = {"name": name}
    if namespace:
        meta["namespace"] = namespace
    if labels:
        meta["labels"] = labels
    spec.setdefault("containers", [{"name": "c", "image": "i"}])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def node(name: str = "n", **parts: Any) -> Any:
    """A node manifest."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, **parts.pop("metadata", {})},
        **parts,
    }
