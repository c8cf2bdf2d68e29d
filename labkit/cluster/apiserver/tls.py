"""A certificate authority of our own, a server certificate, an admin's client certificate."""

from __future__ import annotations

import datetime
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.errors import LabError

_DAYS = 3650


@dataclass(frozen=True)
class Certificates:
    """The files of one server: authority, server pair, admin pair."""

    ca: Path
    server_cert: Path
    server_key: Path
    admin_cert: Path
    admin_key: Path


def ensure_certificates(directory: Path, hosts: list[str]) -> Certificates:
    """The certificates in a directory, made when they are missing, for other hosts, or about to expire."""
    files = Certificates(
        directory / "ca.crt",
        directory / "server.crt",
        directory / "server.key",
        directory / "admin.crt",
        directory / "admin.key",
    )
    marker = directory / "hosts"
    wanted = "\n".join(sorted(hosts))
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        complete = all(p.exists() for p in (files.ca, files.server_key, files.admin_key, marker))
        if not complete or marker.read_text() != wanted or _expires_soon(files.server_cert):
            _make(files, hosts)
            marker.write_text(wanted)
    except OSError as e:
        raise LabError(
            f"cannot write certificates to {directory}: {e.strerror}",
            hint="give a directory that you may write to",
        ) from e
    return files


def _expires_soon(certificate: Path) -> bool:
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError):
        return True
    return found.not_valid_after_utc < datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=7)


def _make(files: Certificates, hosts: list[str]) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = _name("labkit authority", [])
    ca = _sign(
        ca_name,
        ca_name,
        ca_key.public_key(),
        ca_key,
        [
            (x509.BasicConstraints(ca=True, path_length=0), True),
            (_usage(sign_certificates=True), True),
            (x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), False),
        ],
    )
    files.ca.write_bytes(_pem(ca))
    alternatives: list[Any] = []
    for host in hosts:
        try:
            alternatives.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            alternatives.append(x509.DNSName(host))
    from cryptography.x509.oid import ExtendedKeyUsageOID

    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    for cert_file, key_file, subject, extensions in (
        (
            files.server_cert,
            files.server_key,
            _name("kube-apiserver", []),
            [
                (x509.SubjectAlternativeName(alternatives), False),
                (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
            ],
        ),
        (
            files.admin_cert,
            files.admin_key,
            _name("kubernetes-admin", ["system:masters"]),
            [
                (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), False),
            ],
        ),
    ):
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _sign(
            subject,
            ca_name,
            key.public_key(),
            ca_key,
            [
                (x509.BasicConstraints(ca=False, path_length=None), True),
                (_usage(), True),
                (issuer, False),
                *extensions,
            ],
        )
        cert_file.write_bytes(_pem(certificate))
        _write_private(key_file, key)


def _name(common: str, organizations: list[str]) -> Any:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _usage(*, sign_certificates: bool = False) -> Any:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _sign(subject: Any, issuer: Any, public_key: Any, key: Any, extensions: list[tuple[Any, bool]]) -> Any:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    # Real time, whatever clock the lab runs on: clients check certificates against their own.
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(key, hashes.SHA256())


def _pem(certificate: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    pem: bytes = certificate.public_bytes(Encoding.PEM)
    return pem


def _write_private(path: Path, key: Any) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_private(path, pem)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    path.chmod(0o600)
