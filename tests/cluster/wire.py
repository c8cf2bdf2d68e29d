"""A bare HTTPS connection to a served cluster."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from typing import Any
from urllib.parse import urlsplit

from labkit.cluster.apiserver.server import ServerHandle

PODS = "/api/v1/namespaces/default/pods"


def connect(server: ServerHandle, timeout: float = 20) -> http.client.HTTPSConnection:
    """An open connection that trusts the server's authority."""
    config = json.loads(server.kubeconfig_path.read_text())
    import base64

    authority = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
    address = urlsplit(server.url)
    return http.client.HTTPSConnection(
        address.hostname or "",
        address.port,
        timeout=timeout,
        context=ssl.create_default_context(cadata=authority),
    )


def headers(server: ServerHandle, **more: str) -> dict[str, str]:
    """Credentials and a content type."""
    return {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json", **more}


def call(
    server: ServerHandle, method: str, path: str, body: Any = None, content_type: str = "application/json"
) -> tuple[int, Any]:
    """One request on a connection of its own -> status and parsed body."""
    connection = connect(server)
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    connection.request(method, path, data, headers(server, **{"Content-Type": content_type}))
    response = connection.getresponse()
    text = response.read()
    connection.close()
    try:
        return response.status, json.loads(text)
    except ValueError:
        return response.status, text.decode()


def open_watch(server: ServerHandle, path: str) -> tuple[socket.socket, Any]:
    """A started watch: its socket, and a file to read lines from (with chunk headers)."""
    connection = connect(server)
    connection.request("GET", path, headers=headers(server))
    response = connection.getresponse()
    assert response.status == 200, response.read()
    sock = connection.sock
    assert sock is not None
    response.keep = connection  # type: ignore[attr-defined]
    return sock, response
