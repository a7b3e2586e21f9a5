"""Certificates for a mail server on this machine, and for whoever vouches for it."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Certificates(NamedTuple):
    ca_file: Path
    server: ssl.SSLContext


def make(folder: Path, *, name: str = "127.0.0.1") -> Certificates:
    """An authority of our own, and a server that it vouches for."""
    authority, authority_key = _issue("Test authority", None, None)
    cert, key = _issue(name, authority, authority_key)
    ca_file, chain = folder / "ca.pem", folder / "server.pem"
    ca_file.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    chain.write_bytes(cert.public_bytes(serialization.Encoding.PEM) + private)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(chain)
    return Certificates(ca_file, server)


def _issue(
    name: str, issuer: x509.Certificate | None, issuer_key: ec.EllipticCurvePrivateKey | None
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer is not None:
        other = (
            x509.DNSName(name) if name[0].isalpha() else x509.IPAddress(ipaddress.ip_address(name))
        )
        builder = builder.add_extension(x509.SubjectAlternativeName([other]), critical=False)
    return builder.sign(issuer_key or key, hashes.SHA256()), key
