"""One POST to an extender, with kube-scheduler's error texts (spec 04 §2)."""

from __future__ import annotations

import base64
import contextlib
import socket
import ssl
import tempfile
from pathlib import Path
from typing import Any, Protocol

import urllib3

from labkit.errors import LabError


class ExtenderCallError(Exception):
    """A call that failed; the text is what the pod's event shows."""


class TLSSettings(Protocol):
    """`tlsConfig` of an extender."""

    insecure: bool
    server_name: str
    cert_file: str
    key_file: str
    ca_file: str
    cert_data: str
    key_data: str
    ca_data: str


class Transport:
    """Keeps connections to one extender alive. Errors are ExtenderCallError."""

    def __init__(
        self, url_prefix: str, timeout: float, *, enable_https: bool = False, tls: Any = None
    ) -> None:
        self.url_prefix = url_prefix
        self.timeout = timeout
        options: dict[str, Any] = {}
        if url_prefix.startswith("https://"):
            options["ssl_context"] = _ssl_context(enable_https, tls)
            name = str(getattr(tls, "server_name", "") or "")
            if name:
                options.update(server_hostname=name, assert_hostname=name)
        self._pool = urllib3.PoolManager(num_pools=1, maxsize=16, retries=False, **options)

    def url(self, verb: str) -> str:
        """The full URL of `verb`: trailing slashes of the prefix are cut."""
        return f"{self.url_prefix.rstrip('/')}/{verb}"

    def post(self, verb: str, body: bytes) -> bytes:
        """The response body; anything but status 200 is an error."""
        url = self.url(verb)
        try:
            response = self._pool.request(
                "POST",
                url,
                body=body,
                headers={"Content-Type": "application/json", "User-Agent": "labkit-scheduler"},
                timeout=urllib3.Timeout(total=self.timeout),
                retries=urllib3.Retry(total=10, connect=0, read=0, redirect=10, status=0, other=0),
            )
        except urllib3.exceptions.HTTPError as e:
            raise ExtenderCallError(f'Post "{url}": {_go_text(e, url)}') from e
        if response.status != 200:
            raise ExtenderCallError(f"failed {verb} with extender at URL {url}, code {response.status}")
        return bytes(response.data)

    def close(self) -> None:
        """Drop the kept connections."""
        self._pool.clear()


def _go_text(e: BaseException, url: str) -> str:
    """The words in which Go's client reports the same failure."""
    if isinstance(e, urllib3.exceptions.MaxRetryError) and e.reason is not None:
        return _go_text(e.reason, url)
    parts = urllib3.util.parse_url(url)
    host, port = parts.host or "", parts.port or (443 if parts.scheme == "https" else 80)
    cause: BaseException | None = e
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError):
            return f"dial tcp {_address(host, port)}: connect: connection refused"
        if isinstance(cause, socket.gaierror):
            return f"dial tcp: lookup {host}: no such host"
        if isinstance(cause, ConnectionResetError):
            return "read: connection reset by peer"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"tls: failed to verify certificate: x509: {cause.verify_message}"
        cause = cause.__cause__ or cause.__context__
    if isinstance(e, urllib3.exceptions.TimeoutError):
        return "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    return "EOF" if isinstance(e, urllib3.exceptions.ProtocolError) else str(e)


def _address(host: str, port: int) -> str:
    with contextlib.suppress(OSError):
        host = socket.gethostbyname(host)
    return f"{host}:{port}"


def _ssl_context(enable_https: bool, tls: Any) -> ssl.SSLContext:
    has_ca = tls is not None and (tls.ca_file or tls.ca_data)
    if tls is not None and tls.insecure and has_ca:
        raise LabError(
            "couldn't build extenders: specifying a root certificates file with the insecure flag is not allowed",
            hint="drop tlsConfig.insecure or the CA",
        )
    context = ssl.create_default_context()
    if (tls is not None and tls.insecure) or (enable_https and not has_ca):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls is None:
        return context
    try:
        if has_ca:
            data = _bytes(tls.ca_data).decode() if tls.ca_data else Path(tls.ca_file).read_text()
            context.load_verify_locations(cadata=data)
        if tls.cert_data or tls.cert_file:
            _load_client_certificate(context, tls)
    except FileNotFoundError as e:
        raise LabError(f"couldn't build extenders: open {e.filename}: no such file or directory") from e
    except (OSError, ValueError) as e:
        raise LabError(f"couldn't build extenders: {e}", hint="check tlsConfig of the extender") from e
    return context


def _load_client_certificate(context: ssl.SSLContext, tls: Any) -> None:
    if not tls.cert_data:
        context.load_cert_chain(tls.cert_file, tls.key_file or None)
        return
    with tempfile.TemporaryDirectory() as folder:
        cert, key = Path(folder) / "cert.pem", Path(folder) / "key.pem"
        cert.write_bytes(_bytes(tls.cert_data))
        key.touch(mode=0o600)
        key.write_bytes(_bytes(tls.key_data) if tls.key_data else Path(tls.key_file).read_bytes())
        context.load_cert_chain(str(cert), str(key))


def _bytes(data: bytes | str) -> bytes:
    """PEM bytes; text is base64, as in a configuration file."""
    return data if isinstance(data, bytes) else base64.b64decode(data)
