"""The store over the Kubernetes REST API: `serve(store)` for a thread, `run_apiserver(...)` for a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labkit.cluster.apiserver.server import ServerHandle


def serve(store: Any, port: int = 0, **options: Any) -> ServerHandle:
    """Serve a store from a thread; see `server.serve`."""
    from labkit.cluster.apiserver.server import serve as start

    return start(store, port, **options)


def run_apiserver(*args: Any, **options: Any) -> None:
    """Serve until interrupted; see `server.run_apiserver`."""
    from labkit.cluster.apiserver.server import run_apiserver as run

    run(*args, **options)
