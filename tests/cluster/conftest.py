"""A served cluster: real sockets, TLS, a kubeconfig."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from labkit.cluster.apiserver import serve
from labkit.cluster.apiserver.server import ServerHandle
from labkit.cluster.store import Store


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerHandle]:
    """One API server for a test module."""
    directory: Path = tmp_path_factory.mktemp("apiserver")
    store = Store()
    with serve(store, directory=directory, reap_pods=True) as handle:
        yield handle
    store.close()
