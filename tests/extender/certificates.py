"""A throw-away certificate authority for TLS tests."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass
class Authority:
    """Issues certificates into `folder`."""

    folder: Path
    key: Any
    cert: Any
    path: str

    def issue(self, name: str, address: str | None = None) -> tuple[str, str]:
        """(certificate, key) as PEM files."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(name, self.cert.subject, key)
        if address:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), False
            )
        return _write(self.folder, name, builder.sign(self.key, hashes.SHA256()), key)


def make_authority(folder: Path) -> Authority:
    """A fresh authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name("test-ca")
    cert = (
        _builder("test-ca", subject, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .add_extension(x509.KeyUsage(False, False, False, False, False, True, True, False, False), True)
        .sign(key, hashes.SHA256())
    )
    path, _ = _write(folder, "ca", cert, key)
    return Authority(folder, key, cert, path)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(name: str, issuer: x509.Name, key: Any) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )


def _write(folder: Path, name: str, cert: Any, key: Any) -> tuple[str, str]:
    cert_path, key_path = folder / f"{name}.pem", folder / f"{name}-key.pem"
    cert_path.write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return str(cert_path), str(key_path)
