"""Throw-away certificates for a control plane on loopback."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@dataclass(frozen=True)
class CertificateFiles:
    """Paths of one certificate and its key, both PEM."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority that lives in one directory, for the length of a test run."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "labkit test authority")])
        certificate = (
            _builder(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.files = _write(directory, "ca", certificate, self._key)

    def serving(self, name: str) -> CertificateFiles:
        """Certificate of a server on 127.0.0.1 and localhost."""
        addresses = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(_subject(name), self._name, key)
            .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return _write(self._directory, name, certificate, key)

    def client(self, user: str, group: str | None = None) -> CertificateFiles:
        """Certificate with which the API server sees ``user``, a member of ``group``."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(_subject(user, group), self._name, key)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return _write(self._directory, "client-" + user.replace(":", "-"), certificate, key)


def service_account_keys(directory: Path) -> CertificateFiles:
    """Public (``certificate``) and private key with which the API server signs service account tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = directory / "service-account.pub"
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return CertificateFiles(public, _write_key(directory / "service-account.key", key))


def _subject(user: str, group: str | None = None) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    if group:
        attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(attributes)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # An hour back, for machines whose clock jumps a little.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=2))
    )


def _write(
    directory: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> CertificateFiles:
    path = directory / f"{name}.crt"
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return CertificateFiles(path, _write_key(directory / f"{name}.key", key))


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return path
