"""The state of a live cluster, kind by kind: list, then watch; and a word to the user when that fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from labkit.cluster.live import LiveClient, refusal_of
from labkit.cluster.store_errors import ApiError
from labkit.framework.node_info import NodeInfo

Json = dict[str, Any]
Notify = Callable[[Json | None, Json | None], None]
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 10.0
#: A watch that ends sooner than this and has brought nothing is a fault, not a pause.
_SHORT_SECONDS = 1.0
_SYNC_SECONDS = 30.0


class Troubles:
    """Says once what is wrong, and once that it is over, however many watches it hits. Thread-safe."""

    def __init__(self, tell: Callable[[str], None] = lambda _: None) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._open: dict[str, str] = {}

    def report(self, what: str, why: str) -> None:
        """`what` does not work, because of `why`."""
        with self._lock:
            known = why in self._open.values()
            self._open[what] = why
        if not known:
            self._tell(f"{what}: {why}; trying again")

    def over(self, what: str) -> None:
        """`what` works."""
        with self._lock:
            was = bool(self._open)
            self._open.pop(what, None)
            well = was and not self._open
        if well:
            self._tell("the API server answers again")


class Reflector:
    """Keeps `notify(old, new)` told of one kind: list, then watch; resumes, relists on 410, backs off on errors."""

    def __init__(
        self,
        client: LiveClient,
        kind: str,
        notify: Notify,
        stopped: threading.Event,
        troubles: Troubles | None = None,
    ) -> None:
        self._client = client
        self._kind = kind
        self._notify = notify
        self._stopped = stopped
        self._troubles = troubles or Troubles()
        self._wait = _FIRST_WAIT
        self._known: dict[tuple[str, str], Json] = {}
        #: Set once the first list was delivered.
        self.synced = threading.Event()
        self.thread = threading.Thread(target=self._run, name=f"watch-{kind}", daemon=True)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                version = self._relist()
                while not self._stopped.is_set():
                    version = self._watch(version)
            except KeyError:
                # An alpha kind that this client has no path for.
                self.synced.set()
                return
            except ApiError as e:
                if e.code == 404:
                    # The server does not serve this kind: nothing of it exists.
                    self._well()
                    self.synced.set()
                    return
                if e.code != 410:
                    self._pause(f"HTTP {e.code}: {e.message}")
            except (OSError, ValueError) as e:
                self._pause(str(e))

    def _pause(self, why: str) -> None:
        if not self._stopped.is_set():
            self._troubles.report(f"watching {self._kind}", why)
        self._stopped.wait(self._wait)
        self._wait = min(self._wait * 2, _LONGEST_WAIT)

    def _well(self) -> None:
        self._wait = _FIRST_WAIT
        self._troubles.over(f"watching {self._kind}")

    def _relist(self) -> str:
        items, version = self._client.list(self._kind)
        now = {_key(o): o for o in items}
        for key, old in list(self._known.items()):
            if key not in now:
                self._notify(old, None)
        for key, obj in now.items():
            if (
                self._known.get(key, {}).get("metadata", {}).get("resourceVersion")
                != obj["metadata"]["resourceVersion"]
            ):
                self._notify(None, obj)
        self._known = now
        self.synced.set()
        self._well()
        return version

    def _watch(self, version: str) -> str:
        began, heard = time.monotonic(), False
        for type_, obj in self._client.stream(self._kind, version, self._stopped):
            if type_ == "ERROR":
                raise refusal_of(int(obj.get("code", 500)), obj)
            heard = True
            version = str(obj.get("metadata", {}).get("resourceVersion", version))
            if type_ == "BOOKMARK":
                continue
            if type_ == "DELETED":
                self._known.pop(_key(obj), None)
                self._notify(obj, None)
            else:
                self._known[_key(obj)] = obj
                self._notify(None, obj)
        if not heard and time.monotonic() - began < _SHORT_SECONDS:
            self._pause("the server ends watches at once")
        else:
            self._well()
        return version


def node_source(client: LiveClient) -> Callable[[str], NodeInfo | None]:
    """Node name -> NodeInfo from a watch on the cluster's nodes; for extenders asked by name."""
    from labkit.engine.informer import typed
    from labkit.objects.node import Node

    known: dict[str, NodeInfo] = {}

    def notify(old: Json | None, new: Json | None) -> None:
        raw = new if new is not None else old
        name = raw["metadata"]["name"] if raw else ""
        if new is None:
            known.pop(name, None)
            return
        node = typed(new, "Node")
        assert isinstance(node, Node)
        known[name] = NodeInfo(node)

    reflector = Reflector(client, "Node", notify, threading.Event())
    reflector.thread.start()
    reflector.synced.wait(_SYNC_SECONDS)
    return known.get


def _key(obj: Json) -> tuple[str, str]:
    meta = obj.get("metadata") or {}
    return str(meta.get("namespace", "")), str(meta.get("name", ""))
