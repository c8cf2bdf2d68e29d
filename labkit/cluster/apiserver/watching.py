"""Watches over HTTP: one JSON object a line, for as long as the client listens (spec 20 §7.2).

A watch reads the store's history at its own pace. It holds no events of its own, so a thousand idle watches
cost their connections only, and one that falls too far behind is told 410 and ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Any

from labkit.cluster import store_events
from labkit.cluster.apiserver import tables
from labkit.cluster.apiserver.requests import Accepted, Request, Target
from labkit.cluster.apiserver.responses import Response, encode
from labkit.cluster.store import Store
from labkit.cluster.store_errors import Cause, expired, internal, invalid_options, method_not_allowed
from labkit.cluster.store_selectors import Match, compile_selectors
from labkit.cluster.store_types import ResourceType, stored_type
from labkit.cluster.store_watch import ADDED, BOOKMARK, ERROR, Change, History

Json = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]
BOOKMARK_SECONDS = 60.0
#: A client that takes no byte for this long has gone away without saying so.
STALLED_SECONDS = 120.0
_CHUNK = 64 * 1024


class Hub:
    """Wakes the watches of a resource when the store has changed it; lives on the server's event loop."""

    def __init__(self, store: Store) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[ResourceType, set[asyncio.Event]] = {}
        self._changed: set[ResourceType] = set()
        self.closing = False
        self._stop = store.on_change(self._note)

    def _note(self, change: Change) -> None:
        # In the writer's thread, under the store's lock: one wake-up for a burst of changes.
        if change.resource not in self._changed and self._waiting.get(change.resource):
            self._changed.add(change.resource)
            with contextlib.suppress(RuntimeError):  # the loop may have been closed
                self._loop.call_soon_threadsafe(self._wake, change.resource)

    def _wake(self, resource: ResourceType) -> None:
        self._changed.discard(resource)
        for event in self._waiting.get(resource, ()):
            event.set()

    def join(self, resource: ResourceType, event: asyncio.Event) -> None:
        """Have an event set after changes of a resource."""
        self._waiting.setdefault(resource, set()).add(event)

    def leave(self, resource: ResourceType, event: asyncio.Event) -> None:
        """No longer."""
        self._waiting.get(resource, set()).discard(event)

    @property
    def watches(self) -> int:
        """How many watches are open."""
        return sum(len(w) for w in self._waiting.values())

    def close(self) -> None:
        """End all watches."""
        self.closing = True
        self._stop()
        for events in self._waiting.values():
            for event in events:
                event.set()


class WatchResponse:
    """One open watch."""

    def __init__(self, store: Store, hub: Hub, target: Target, request: Request, accepted: Accepted) -> None:
        self.store, self.hub, self.request, self.accepted = store, hub, request, accepted
        resource = target.resource
        if "watch" not in resource.verbs:
            raise method_not_allowed()
        self.resource, self.namespace = resource, target.namespace
        query = request.query
        fields = query.get("fieldSelector")
        if target.watch_path and target.name is not None:
            fields = ",".join(p for p in (fields, f"metadata.name={target.name}") if p)
        self.match: Match | None = compile_selectors(resource, query.get("labelSelector"), fields)
        self.bookmarks = request.flag("allowWatchBookmarks")
        self.timeout = float(request.integer("timeoutSeconds") or 0) or random.uniform(1800, 3600)
        self.history: History = store.history(resource)
        self.initial: list[Json] = []
        self.initial_end = False
        self.error: Json | None = None
        self._columns_sent = False
        self._view_key = (resource, accepted.view)
        with store.lock:
            self._begin(query)

    def _begin(self, query: dict[str, str]) -> None:
        given, wants_initial = query.get("resourceVersion", ""), self.request.flag("sendInitialEvents")
        if "sendInitialEvents" in query and query.get("resourceVersionMatch") != "NotOlderThan":
            problem = (
                "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
                if not query.get("resourceVersionMatch")
                else 'Unsupported value: supported values: "NotOlderThan"'
            )
            raise invalid_options(
                "ListOptions", Cause("FieldValueForbidden", problem, "resourceVersionMatch")
            )
        if given and not (given.isascii() and given.isdigit()):
            raise internal(
                f'resourceVersion: Invalid value: "{given}": strconv.ParseUint: parsing "{given}": invalid syntax'
            )
        from_start = given in ("", "0")
        explicit_no = "sendInitialEvents" in query and not wants_initial
        self.position: int | None = self.history.end
        if (from_start or wants_initial) and not explicit_no:
            self.initial = self.store.select(self.resource, self.namespace, self.match)
            self.initial_end = self.bookmarks
        elif not from_start:
            self.position = self.history.position_after(int(given))
            if self.position is None:
                self._too_old(given)
        self.version = self.store.version

    def _too_old(self, given: str) -> None:
        self.error = expired(f"too old resource version: {given} ({self.history.lost_version})").to_status()

    async def run(self, receive: Receive, send: Send) -> None:
        """Stream until the client goes, the time is over, the client is too slow, or the server stops."""
        head = Response(200, b"").start()
        head["headers"] = [(k, v) for k, v in head["headers"] if k != b"content-length"]
        await send(head)
        self._send = send
        wake = asyncio.Event()
        gone = asyncio.ensure_future(_until_gone(receive, wake))
        kept = stored_type(self.resource)
        self.hub.join(kept, wake)
        try:
            if await self._send_initial(gone):
                await self._follow(wake, gone)
            with contextlib.suppress(Exception):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self.hub.leave(kept, wake)
            gone.cancel()

    async def _send_initial(self, gone: asyncio.Future[None]) -> bool:
        # An empty chunk sends the headers, so that the client knows it is connected.
        lines: list[bytes] = []
        size = 0
        objects, self.initial = self.initial, []
        for obj in objects:
            line = self._line(ADDED, self._body(obj))
            lines.append(line)
            size += len(line)
            if size > _CHUNK:
                if not await self._write(b"".join(lines), gone):
                    return False
                lines, size = [], 0
        if self.initial_end:
            lines.append(self._bookmark(initial_end=True))
        if self.error is not None:
            lines.append(_error_line(self.error))
        return await self._write(b"".join(lines), gone) and self.error is None

    async def _follow(self, wake: asyncio.Event, gone: asyncio.Future[None]) -> None:
        loop = asyncio.get_running_loop()
        end, bookmark_at = loop.time() + self.timeout, loop.time() + BOOKMARK_SECONDS
        while not gone.done() and not self.hub.closing:
            wake.clear()
            with self.store.lock:
                changes = self.history.read(self.position or 0, limit=500)
                if changes is not None:
                    self.position = (self.position or 0) + len(changes)
                    drained = self.position >= self.history.end
                    if drained:
                        self.version = self.store.version
                    elif changes:
                        self.version = changes[-1].version
            if changes is None:
                self._too_old(str(self.version))
                await self._write(_error_line(self.error or {}), gone)
                return
            lines = [line for change in changes if (line := self._change_line(change)) is not None]
            if lines and not await self._write(b"".join(lines), gone):
                return
            if not drained:
                continue
            now = loop.time()
            if self.bookmarks and now >= bookmark_at:
                bookmark_at = now + BOOKMARK_SECONDS
                if not await self._write(self._bookmark(), gone):
                    return
            until = min(end, bookmark_at) if self.bookmarks else end
            if now >= end:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(wake.wait(), max(0.0, until - now))

    async def _write(self, data: bytes, gone: asyncio.Future[None]) -> bool:
        sending = asyncio.ensure_future(
            self._send({"type": "http.response.body", "body": data, "more_body": True})
        )
        await asyncio.wait({sending, gone}, timeout=STALLED_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            return sending.exception() is None
        sending.cancel()
        return False

    # Lines

    def _change_line(self, change: Change) -> bytes | None:
        kind = change.seen_by(self.namespace, self.match)
        if kind is None:
            return None
        if self.accepted.view == "Table":
            return self._line(kind, self._body(change.new))
        if change.wire is None:
            change.wire = {}
        body = change.wire.get(self._view_key)
        if body is None:
            body = change.wire[self._view_key] = self._body(change.new)
        return self._line(kind, body)

    def _body(self, obj: Json) -> bytes:
        if self.accepted.view == "Table":
            include = self.request.query.get("includeObject", "") or "Metadata"
            meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            now = self.store.clock.now()
            found = tables.table(
                self.resource, [obj], meta, now, include, with_columns=not self._columns_sent
            )
            if self._columns_sent:
                found["columnDefinitions"] = None
            self._columns_sent = True
            return encode(found)
        seen = store_events.as_seen_by(self.resource, obj)
        return encode(tables.partial(seen) if self.accepted.view == "PartialObjectMetadata" else seen)

    @staticmethod
    def _line(kind: str, body: bytes) -> bytes:
        return b"".join((b'{"type":"', kind.encode(), b'","object":', body, b"}\n"))

    def _bookmark(self, *, initial_end: bool = False) -> bytes:
        obj = self.store.bookmark(self.resource, initial_end=initial_end, version=self.version)
        if self.accepted.view == "Table":
            meta = {"resourceVersion": obj["metadata"]["resourceVersion"]}
            obj = {
                "kind": "Table",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": meta,
                "columnDefinitions": None,
                "rows": [{"cells": [], "object": tables.partial(obj)}] if initial_end else [],
            }
        elif self.accepted.view == "PartialObjectMetadata":
            obj = tables.partial(obj)
        return self._line(BOOKMARK, encode(obj))


def _error_line(status: Json) -> bytes:
    return WatchResponse._line(ERROR, encode(status))


async def _until_gone(receive: Receive, wake: asyncio.Event) -> None:
    try:
        while (await receive())["type"] != "http.disconnect":
            pass
    finally:
        wake.set()
