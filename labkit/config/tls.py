"""What can be wrong with the TLS settings of an extender before the first call (spec 04 §1)."""

from __future__ import annotations

import errno
import re
from pathlib import Path

from labkit.config.types import ExtenderConfig, ExtenderTLSConfig

_PEM = re.compile(rb"-----BEGIN ([^-\r\n]*)-----\s*?\n(.*?)-----END \1-----", re.DOTALL)
_GO_TEXTS = {
    errno.ENOENT: "no such file or directory",
    errno.EACCES: "permission denied",
    errno.ENOTDIR: "not a directory",
}


def tls_error(extender: ExtenderConfig) -> str | None:
    """The reason why no HTTP client can be made for this extender, or None."""
    tls = extender.tls_config or ExtenderTLSConfig()
    has_ca = bool(tls.ca_file or tls.ca_data)
    insecure = tls.insecure or (extender.enable_https and not has_ca)
    has_cert = bool(tls.cert_file or tls.cert_data) and bool(tls.key_file or tls.key_data)
    if not (has_ca or has_cert or insecure or tls.server_name):
        return None
    if has_ca and insecure:
        return "specifying a root certificates file with the insecure flag is not allowed"
    authority, wrong = _content(tls.ca_data, tls.ca_file)
    if wrong is None:
        _, wrong = _content(tls.cert_data, tls.cert_file)
    if wrong is None:
        _, wrong = _content(tls.key_data, tls.key_file)
    if wrong is None and has_ca and authority:
        wrong = _authority_error(authority)
    return wrong


def _content(data: bytes, file: str) -> tuple[bytes, str | None]:
    if data or not file:
        return data, None
    try:
        return Path(file).read_bytes(), None
    except IsADirectoryError:
        return b"", f"read {file}: is a directory"
    except OSError as error:
        text = _GO_TEXTS.get(error.errno or 0) or (error.strerror or "cannot be read").lower()
        return b"", f"open {file}: {text}"


def _authority_error(data: bytes) -> str | None:
    blocks = _PEM.findall(data)
    if not blocks:
        return "unable to load root certificates: unable to parse bytes as PEM block"
    if any(kind == b"CERTIFICATE" for kind, _ in blocks):
        return None
    return "unable to load root certificates: no valid certificate authority data seen"
