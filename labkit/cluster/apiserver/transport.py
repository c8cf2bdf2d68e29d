"""uvicorn underneath: TLS with optional client certificates, many idle connections, a clean end."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Any

import uvicorn

from labkit.cluster.apiserver.app import ApiServer
from labkit.cluster.apiserver.auth import Authenticator
from labkit.cluster.apiserver.tls import Certificates
from labkit.cluster.store import Store

KEEP_ALIVE_SECONDS = 120
MAX_HEAD = 64 * 1024
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def protocol() -> type[Any]:
    """uvicorn's protocol over httptools, else the one over h11 (which bounds the size of a request's head itself)."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        from uvicorn.protocols.http.h11_impl import H11Protocol

        return H11Protocol

    class BoundedHead(HttpToolsProtocol):
        """Refuses requests whose head does not end; the parser itself would take them for ever."""

        in_head = False
        head_size = 0

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.in_head:
                self.head_size += len(data)
                if self.head_size > MAX_HEAD:
                    self.transport.write(_TOO_LARGE)
                    self.transport.close()

        def on_message_begin(self) -> None:
            self.in_head, self.head_size = True, 0
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self.in_head = False
            super().on_headers_complete()

    return BoundedHead


class GatheringTransport:
    """Sends what is written in one turn of the event loop as one piece: headers and body, or a burst of events."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._parts: list[bytes] = []
        self._loop = asyncio.get_running_loop()

    def write(self, data: bytes) -> None:
        """Send soon."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def _flush(self) -> None:
        if self._parts and not self._transport.is_closing():
            self._transport.write(b"".join(self._parts))
        self._parts.clear()

    def close(self) -> None:
        """Send what is left, and close."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._parts.clear()
        self._transport.abort()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _Server(uvicorn.Server):
    """Ends the watches before it waits for connections to end."""

    def __init__(self, config: uvicorn.Config, app: ApiServer) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: Any = None) -> None:
        """Close everything."""
        if self._app.hub is not None:
            self._app.hub.close()
        await super().shutdown(sockets)


def make_server(
    store: Store, authenticator: Authenticator, address: str, certificates: Certificates | None
) -> tuple[uvicorn.Server, ApiServer]:
    """A uvicorn server of the store, not yet running."""
    peers: dict[Any, dict[str, Any]] = {}
    base = protocol()

    class Protocol(base):  # type: ignore[misc, valid-type]
        """Remembers who the client's certificate says it is, for as long as the connection lasts."""

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(GatheringTransport(transport))
            certificate = transport.get_extra_info("peercert")
            if certificate and self.client is not None:
                peers[tuple(self.client)] = certificate

        def connection_lost(self, exc: Exception | None) -> None:
            if getattr(self, "client", None) is not None:
                peers.pop(tuple(self.client), None)
            super().connection_lost(exc)

    app = ApiServer(
        store,
        authenticator,
        address=address,
        certificate_of=lambda c: peers.get(tuple(c)) if c is not None else None,
    )
    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=1,
        interface="asgi3",
        proxy_headers=False,
    )
    # Errors are answered and logged by the application; what uvicorn has to say of connections interests nobody.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    config.load()
    if certificates is not None:
        config.ssl = _context(certificates)
    return _Server(config, app), app


def _context(certificates: Certificates) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificates.server_cert, certificates.server_key)
    context.load_verify_locations(certificates.ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context
