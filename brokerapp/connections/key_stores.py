"""Reads files with keys and certificates: PKCS12 and PEM, told apart by what is in the file, not by its name.

Java's own format (JKS) is not read: the error says how to turn it into PKCS12. Loaded by those who use TLS alone, as it
takes ten megabytes.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates, load_pkcs12

from brokerapp.errors import ConfigurationRefused
from brokerapp.model.transport_connector import KeyStore

#: First bytes of Java's own formats: JKS and JCEKS.
_JAVA = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_PEM = b"-----BEGIN "


class WrongPassword(ConfigurationRefused):
    """A PKCS12 file that cannot be opened with the password given."""


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """What a certificate says of itself."""

    subject: str
    issuer: str
    hosts: tuple[str, ...]  #: names and addresses that it is for
    valid_from: datetime
    valid_until: datetime
    is_self_signed: bool
    der: bytes = field(repr=False)


def own_certificate(store: KeyStore) -> bytes:
    """Return the certificate, as DER, that goes with the key of a key store."""
    return _own(store).public_bytes(Encoding.DER)


def read_certificate(store: KeyStore) -> CertificateFacts:
    """Return what the certificate of a key store says. Raises ConfigurationRefused."""
    try:
        found = _own(store)
    except ValueError as wrong:
        raise ConfigurationRefused(f"{store.path}: no certificate can be read from it: {wrong}") from wrong
    return CertificateFacts(
        found.subject.rfc4514_string(), found.issuer.rfc4514_string(), _hosts(found), found.not_valid_before_utc,
        found.not_valid_after_utc, found.subject == found.issuer, found.public_bytes(Encoding.DER),
    )  # fmt: skip


def _own(store: KeyStore) -> x509.Certificate:
    content = read_store(store)
    if not content.startswith(b"0"):
        return x509.load_pem_x509_certificates(content)[0]
    found = _pkcs12(store, content).cert
    if found is None:
        raise ConfigurationRefused(f"{store.path}: private key with a certificate not found")
    return found.certificate


def _hosts(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return (
        *names.get_values_for_type(x509.DNSName),
        *(str(each) for each in names.get_values_for_type(x509.IPAddress)),
    )


def certificates(store: KeyStore) -> list[str]:
    """Return all certificates in a trust store, as PEM. Raises ConfigurationRefused."""
    content = read_store(store)
    try:
        if content.startswith(b"0"):
            packed = _pkcs12(store, content)
            found = [each.certificate for each in (packed.cert, *packed.additional_certs) if each is not None]
        else:
            found = x509.load_pem_x509_certificates(content)
    except ValueError as wrong:
        raise ConfigurationRefused(f"{store.path}: no certificates can be read from it: {wrong}") from wrong
    if not found:
        raise ConfigurationRefused(f"{store.path}: there are no certificates in it")
    return [each.public_bytes(Encoding.PEM).decode() for each in found]


def unpacked(store: KeyStore, content: bytes) -> tuple[bytes, bytes]:
    """Return a PKCS12 file's key and certificates as PEM, the key under a password made up for the purpose."""
    packed = _pkcs12(store, content)
    if packed.key is None or packed.cert is None:
        raise ConfigurationRefused(f"{store.path}: private key with a certificate not found")
    password = secrets.token_urlsafe().encode()
    key = packed.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password))
    chain = [packed.cert, *packed.additional_certs]
    return key + b"".join(each.certificate.public_bytes(Encoding.PEM) for each in chain), password


def _pkcs12(store: KeyStore, content: bytes) -> PKCS12KeyAndCertificates:
    try:
        return load_pkcs12(content, store.password.encode() if store.password else None)
    except ValueError as wrong:
        why = "wrong password" if store.password else "it needs a password"
        raise WrongPassword(f"{store.path}: {why}, or the file is damaged") from wrong


def read_store(store: KeyStore) -> bytes:
    """Return what is in the file. Raises ConfigurationRefused for a format that cannot be read."""
    path = store.path
    try:
        content = Path(path).read_bytes()
    except OSError as wrong:
        raise ConfigurationRefused(f"{path}: {wrong.strerror}") from wrong
    if content.startswith(_JAVA):
        raise ConfigurationRefused(
            f"{path} is a Java keystore (JKS), which cannot be read here; make a PKCS12 file of it: keytool "
            f"-importkeystore -srckeystore {path} -destkeystore {path}.p12 -deststoretype PKCS12"
        )
    if not content.startswith(b"0") and _PEM not in content:
        raise ConfigurationRefused(f"{path} is neither PKCS12 nor PEM")
    return content
