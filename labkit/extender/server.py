"""HTTP for an ExtenderService: one thread a connection, bodies read and written without copies.

The standard library's server rather than an ASGI stack: 52 MB node lists are read straight into one buffer and
passed nodes are sent straight out of it, which keeps memory near the size of the request body.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import socket
import ssl
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from labkit.errors import LabError
from labkit.extender.metrics import ExtenderMetrics
from labkit.extender.service import VERBS, ExtenderService, PluginFailure
from labkit.extender.wire import Chunks, WireError, encode_binding_result, encode_filter_result

#: Larger bodies are refused with 413: five times the largest cluster's node list.
MAX_BODY_BYTES = 512 * 1024 * 1024
#: Below kube-scheduler's default httpTimeout of 5 s, so that it hears why.
DEFAULT_DEADLINE_SECONDS = 4.0
_IOV = 512
_SOCKET_BUFFER = 4 * 1024 * 1024
#: A silent connection is closed after this time.
_IDLE_SECONDS = 600


class RequestDeadline(BaseException):
    """Raised inside a plugin that runs past the request's deadline."""


class _Active:
    """A request being answered; whoever takes `open` first, the worker or the watchdog, writes the answer."""

    __slots__ = ("deadline", "handler", "lock", "open", "thread_id", "verb")

    def __init__(self, handler: _Handler, verb: str, deadline: float) -> None:
        self.handler = handler
        self.verb = verb
        self.deadline = deadline
        self.lock = threading.Lock()
        self.open = True
        self.thread_id = threading.get_ident()

    def close(self) -> bool:
        with self.lock:
            was, self.open = self.open, False
            return was


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 0
    server: _Server
    fields: dict[str, str]
    raw_requestline: bytes
    _buffer: bytearray = bytearray()

    def setup(self) -> None:
        # Large socket buffers and a time-out kept by the kernel, not by Python (which would make the socket
        # non-blocking): a node list of 50 MB then crosses in a few system calls.
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            self.request.setsockopt(socket.SOL_SOCKET, option, _SOCKET_BUFFER)
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self.request.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", _IDLE_SECONDS, 0))
        super().setup()

    def parse_request(self) -> bool:
        """The request line and headers, read without the e-mail parser of the standard library: half the time
        of a small request would go there. False when the request is no HTTP/1.x; it has been answered then."""
        self.close_connection = True
        words = self.raw_requestline.split()
        self.command, self.path, self.request_version = "", "", "HTTP/1.1"
        self.requestline = self.raw_requestline.decode("latin-1").rstrip("\r\n")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            self._refuse(400, f"not an HTTP/1.1 request: {self.requestline[:80]!r}")
            return False
        self.command, self.path = words[0].decode("latin-1"), words[1].decode("latin-1")
        headers: dict[str, str] = {}
        while (line := self.rfile.readline(65537)) not in (b"\r\n", b"\n", b""):
            name, colon, value = line.partition(b":")
            if not colon or len(line) > 65536 or len(headers) > 100:
                self._refuse(400, "malformed headers")
                return False
            headers[name.strip().lower().decode("latin-1")] = value.strip().decode("latin-1")
        self.fields = headers
        connection = headers.get("connection", "").lower()
        keep = (words[2] == b"HTTP/1.1" and connection != "close") or connection == "keep-alive"
        self.close_connection = not keep
        if headers.get("expect", "").lower() == "100-continue":
            self.connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    def do_GET(self) -> None:
        path = self.path.split("?", 1)[0]
        if path in ("/healthz", "/livez", "/readyz"):
            self._reply(200, [b"ok"], b"text/plain; charset=utf-8")
        elif path == "/metrics":
            self._reply(200, [self.server.metrics.render()], b"text/plain; version=0.0.4; charset=utf-8")
        elif path.rstrip("/").rsplit("/", 1)[-1] in VERBS:
            self._complain(405, "use POST: kube-scheduler posts JSON to this path", ((b"Allow", b"POST"),))
        else:
            self._complain(
                404, f"nothing at {path}; this extender serves POST {', '.join('/' + v for v in VERBS)}"
            )

    do_HEAD = do_GET

    def do_POST(self) -> None:
        started = time.perf_counter()
        verb = self.path.split("?", 1)[0].rstrip("/").rsplit("/", 1)[-1]
        body = self._body()
        if body is None:
            return
        if verb not in VERBS:
            self._complain(
                404, f"unknown verb {verb!r}; this extender serves {', '.join('/' + v for v in VERBS)}"
            )
            return
        code = self._answer(verb, body)
        self.server.metrics.observe(verb, code, time.perf_counter() - started)

    def _answer(self, verb: str, body: bytearray | memoryview) -> int:
        active = self.server.watch(self, verb)
        code = 200
        try:
            try:
                chunks = self.server.service.answer(verb, body)
            except WireError as e:
                code, chunks = 400, _error(f"invalid request: {e}")
            except PluginFailure as e:
                code, chunks = 500, _error(str(e))
            except Exception as e:
                code, chunks = 500, _error(f"{type(e).__name__}: {e}")
            finally:
                mine = self.server.unwatch(active)
        except RequestDeadline:
            mine = self.server.unwatch(active)
        if not mine:
            self.close_connection = True
            return 504
        self._reply(code, chunks)
        return code

    def deadline_passed(self, verb: str, seconds: float) -> None:
        """Answer for a plugin that takes too long, from the watchdog's thread."""
        text = f"the plugins took longer than the deadline of {seconds:g} s for one {verb} request"
        if verb == "filter":
            code, chunks = 200, encode_filter_result(error=text)
        elif verb == "bind":
            code, chunks = 200, encode_binding_result(text)
        else:
            code, chunks = 504, _error(text)
        with contextlib.suppress(OSError):
            self._reply(code, chunks, close=True)
            self.connection.shutdown(socket.SHUT_WR)

    def _body(self) -> bytearray | memoryview | None:
        if "chunked" in self.fields.get("transfer-encoding", "").lower():
            return self._chunked_body()
        try:
            size = int(self.fields.get("content-length") or 0)
        except ValueError:
            size = -1
        if size < 0:
            self._refuse(400, f"Content-Length {self.fields.get('content-length')!r} is not a number")
            return None
        if size > MAX_BODY_BYTES:
            self._refuse(413, f"the body of {size} bytes is larger than {MAX_BODY_BYTES}")
            return None
        # The buffer of the connection's last request serves again: fresh pages cost more than the copy.
        if not size <= len(self._buffer) <= 2 * size + 65536:
            self._buffer = bytearray(size)
        view = memoryview(self._buffer)[:size]
        got = self.rfile.readinto1(view) if size else 0
        whole = 0 if isinstance(self.connection, ssl.SSLSocket) else socket.MSG_WAITALL
        while 0 < got < size:
            n = self.connection.recv_into(view[got:], 0, whole)
            got = got + n if n else 0
        if got < size:
            self.close_connection = True
            return None
        return view

    def _chunked_body(self) -> bytearray | None:
        body = bytearray()
        while True:
            line = self.rfile.readline(66)
            try:
                size = int(line.split(b";", 1)[0], 16)
            except ValueError:
                self._refuse(400, "malformed chunked body")
                return None
            if len(body) + size > MAX_BODY_BYTES:
                self._refuse(413, f"the body is larger than {MAX_BODY_BYTES} bytes")
                return None
            body += self.rfile.read(size)
            self.rfile.readline(3)
            if size == 0:
                return body

    def _refuse(self, code: int, text: str) -> None:
        self.close_connection = True
        self._complain(code, text)

    def _complain(self, code: int, text: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        self._reply(code, _error(text), headers=headers)

    def _reply(
        self,
        code: int,
        chunks: Chunks,
        content_type: bytes = b"application/json",
        *,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        close: bool = False,
    ) -> None:
        size = sum(map(len, chunks))
        head = b"HTTP/1.1 %d %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n" % (
            code,
            _REASONS.get(code, b"Unknown"),
            content_type,
            size,
        )
        for name, value in headers:
            head += b"%b: %b\r\n" % (name, value)
        if close or self.close_connection:
            head += b"Connection: close\r\n"
        head += b"\r\n"
        if self.command == "HEAD":
            chunks = []
        if size < 65536:
            self.connection.sendall(head + b"".join(chunks))
        else:
            self.connection.sendall(head)
            _send_all(self.connection, chunks)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the service keeps records, and notebooks must not get stray output."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512
    allow_reuse_address = True

    def __init__(
        self,
        address: tuple[str, int],
        service: ExtenderService,
        tls: ssl.SSLContext | None,
        deadline: float,
    ) -> None:
        self.service = service
        self.metrics = ExtenderMetrics()
        self._tls = tls
        self._deadline = deadline
        self._active: set[_Active] = set()
        self._active_lock = threading.Lock()
        self._open: set[Any] = set()
        self._open_changed = threading.Condition()
        self.stopping = threading.Event()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._open_changed:
            self._open.add(request)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._open_changed:
                self._open.discard(request)
                self._open_changed.notify_all()

    def hang_up(self) -> None:
        """End kept connections on which nothing is asked any more; answers that are under way are still sent."""
        with self._open_changed:
            for request in self._open:
                with contextlib.suppress(OSError):
                    # The plain socket's own: a TLS socket's shutdown would have the rest of an answer sent in clear.
                    socket.socket.shutdown(request, socket.SHUT_RD)
            self._open_changed.wait_for(lambda: not self._open, timeout=1)

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self._tls is None:
            super().finish_request(request, client_address)
            return
        # The handshake runs on the connection's own thread: a silent client must not block the others.
        request.settimeout(10)
        try:
            secured = self._tls.wrap_socket(request, server_side=True)
            secured.settimeout(None)
        except (OSError, ssl.SSLError):
            return
        with self._open_changed:
            self._open.discard(request)
            self._open.add(secured)
        try:
            super().finish_request(secured, client_address)
        finally:
            with self._open_changed:
                self._open.discard(secured)
                self._open_changed.notify_all()
            with contextlib.suppress(OSError):
                secured.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks is no news."""

    def watch(self, handler: _Handler, verb: str) -> _Active:
        active = _Active(handler, verb, time.monotonic() + self._deadline)
        with self._active_lock:
            self._active.add(active)
        return active

    def unwatch(self, active: _Active) -> bool:
        with self._active_lock:
            self._active.discard(active)
        return active.close()

    def watchdog(self) -> None:
        """Answer overdue requests and interrupt their plugins."""
        while not self.stopping.wait(0.05):
            now = time.monotonic()
            with self._active_lock:
                overdue = [a for a in self._active if a.deadline < now]
                self._active.difference_update(overdue)
            for active in overdue:
                if active.close():
                    active.handler.deadline_passed(active.verb, self._deadline)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(
                        ctypes.c_ulong(active.thread_id), ctypes.py_object(RequestDeadline)
                    )


class ExtenderServer:
    """A running extender. `url` is what goes into `urlPrefix`; `stop()` ends it; also a context manager."""

    def __init__(
        self,
        service: ExtenderService,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls_cert: str | None = None,
        tls_key: str | None = None,
        client_ca: str | None = None,
        deadline: float = DEFAULT_DEADLINE_SECONDS,
    ) -> None:
        self.service = service
        tls = _tls_context(tls_cert, tls_key, client_ca)
        try:
            self._server = _Server((host, port), service, tls, deadline)
        except OSError as e:
            raise LabError(
                f"cannot listen on {host}:{port}: {e.strerror or e}", hint="choose another --port"
            ) from e
        self.host, self.port = str(self._server.server_address[0]), int(self._server.server_address[1])
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"
        self._threads = [
            threading.Thread(target=self._server.serve_forever, args=(0.02,), name="extender", daemon=True),
            threading.Thread(target=self._server.watchdog, name="extender-deadlines", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def metrics(self) -> ExtenderMetrics:
        """Counters of this server."""
        return self._server.metrics

    @property
    def stopped(self) -> bool:
        """True after `stop()`."""
        return self._server.stopping.is_set()

    def stop(self) -> None:
        """Stop listening. Idempotent; requests that are being answered finish."""
        if self._server.stopping.is_set():
            return
        self._server.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._server.hang_up()

    def __enter__(self) -> ExtenderServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _tls_context(cert: str | None, key: str | None, client_ca: str | None) -> ssl.SSLContext | None:
    if cert is None and key is None and client_ca is None:
        return None
    if cert is None or key is None:
        raise LabError("TLS needs both --tls-cert and --tls-key", hint="give the two PEM files")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key)
        if client_ca is not None:
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as e:
        raise LabError(
            f"cannot use the TLS files {cert}, {key}{f', {client_ca}' if client_ca else ''}: {e}"
        ) from e
    return context


def _send_all(connection: socket.socket, chunks: Chunks) -> None:
    if isinstance(connection, ssl.SSLSocket):
        for i in range(0, len(chunks), 16):
            connection.sendall(b"".join(chunks[i : i + 16]))
        return
    views = [memoryview(c) for c in chunks]
    start = 0
    while start < len(views):
        sent = connection.sendmsg(views[start : start + _IOV])
        while start < len(views) and sent >= len(views[start]):
            sent -= len(views[start])
            start += 1
        if sent:
            views[start] = views[start][sent:]


def _error(text: str) -> Chunks:
    return [json.dumps({"Error": text}).encode()]


_REASONS = {
    200: b"OK",
    400: b"Bad Request",
    404: b"Not Found",
    405: b"Method Not Allowed",
    413: b"Payload Too Large",
    500: b"Internal Server Error",
    504: b"Gateway Timeout",
}
