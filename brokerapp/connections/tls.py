"""TLS: files with keys and certificates -> what a listener needs to speak it.

PKCS12 and PEM are read, told apart by what is in the file, not by its name. Java's own format (JKS) is not: the error
says how to turn it into PKCS12.
"""

from __future__ import annotations

import os
import secrets
import ssl
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates, load_pkcs12

from brokerapp.errors import ConfigurationRefused
from brokerapp.model.transport_connector import PLAIN_TLS, ClientAuth, KeyStore, TlsOptions, TlsStores

#: First bytes of Java's own formats: JKS and JCEKS.
_JAVA = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_PEM = b"-----BEGIN "
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_VERIFY = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.WANTED: ssl.CERT_OPTIONAL,
    ClientAuth.NEEDED: ssl.CERT_REQUIRED,
}


def server_context(stores: TlsStores, options: TlsOptions = PLAIN_TLS) -> ssl.SSLContext:
    """Return a listener's TLS context. Raises ConfigurationRefused, which names the file and what is wrong with it."""
    if stores.key_store is None:
        raise ConfigurationRefused(
            'it needs a certificate: <sslContext keyStore="file:broker.p12" keyStorePassword=.../>'
        )
    if options.client_auth is ClientAuth.NEEDED and stores.trust_store is None:
        raise ConfigurationRefused("needClientAuth without a trustStore: no client's certificate would be believed")
    context = _context(ssl.PROTOCOL_TLS_SERVER, stores, options)
    context.options |= ssl.OP_NO_RENEGOTIATION  # it costs the server far more than the client
    context.verify_mode = _VERIFY[options.client_auth]
    return context


def mutual_contexts(stores: TlsStores) -> tuple[ssl.SSLContext, ssl.SSLContext, bytes]:
    """Return TLS contexts of two peers, as server and as client, and the own certificate as DER: each shows one
    that the other's trust store vouches for, whatever host it names. Raises ConfigurationRefused.
    """
    called = server_context(stores, TlsOptions(client_auth=ClientAuth.NEEDED))  # refuses stores without a key store
    assert stores.key_store is not None
    calling = _context(ssl.PROTOCOL_TLS_CLIENT, stores, PLAIN_TLS)
    calling.check_hostname = False
    return called, calling, _own_certificate(stores.key_store)


def _own_certificate(store: KeyStore) -> bytes:
    """Return the certificate, as DER, that goes with the key of a key store."""
    content = _read(store)
    if content.startswith(b"0"):
        found = _pkcs12(store, content).cert
        assert found is not None
        certificate = found.certificate
    else:
        certificate = x509.load_pem_x509_certificates(content)[0]
    return certificate.public_bytes(Encoding.DER)


def _context(protocol: int, stores: TlsStores, options: TlsOptions) -> ssl.SSLContext:
    """With the broker's own certificate and those it believes."""
    context = ssl.SSLContext(protocol)
    versions = [_VERSIONS[name] for name in options.protocols] or list(_VERSIONS.values())
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    assert stores.key_store is not None  # the callers check it
    _load_identity(context, stores.key_store, stores.key)
    if stores.trust_store is not None:
        for certificate in _certificates(stores.trust_store):
            context.load_verify_locations(cadata=certificate.public_bytes(Encoding.PEM).decode())
    return context


def client_context(stores: TlsStores) -> ssl.SSLContext:
    """Return a bridge's TLS context: it trusts the `trustStore`, or else whom the system trusts, and
    shows the certificate of the `keyStore`, if there is one. Raises ConfigurationRefused.
    """
    context = ssl.create_default_context() if stores.trust_store is None else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for certificate in _certificates(stores.trust_store) if stores.trust_store is not None else ():
        context.load_verify_locations(cadata=certificate.public_bytes(Encoding.PEM).decode())
    if stores.key_store is not None:
        _load_identity(context, stores.key_store, stores.key)
    return context


class ClientContexts:
    """Makes client contexts of these stores: anew only when their files have changed, as they are slow to read.

    It is called in threads of their own. Raises ConfigurationRefused.
    """

    def __init__(self, stores: TlsStores) -> None:
        self._stores = stores
        self._files = [each.path for each in (stores.key_store, stores.key, stores.trust_store) if each is not None]
        self._lock = threading.Lock()
        self._made: tuple[list[int | None], ssl.SSLContext] | None = None

    def __call__(self) -> ssl.SSLContext:
        """Return the TLS context for the files as they are now."""
        with self._lock:
            times = [_modified_ns(each) for each in self._files]
            if self._made is None or self._made[0] != times:
                self._made = times, client_context(self._stores)
            return self._made[1]


def _modified_ns(path: str) -> int | None:
    """When a file was written, in nanoseconds; None: it cannot be looked at, which whoever reads it says."""
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return None


def _load_identity(context: ssl.SSLContext, store: KeyStore, key: KeyStore | None) -> None:
    """Put the broker's key and certificates into the context."""
    content = _read(store)
    try:
        if content.startswith(b"0"):
            pem, password = _unpacked(store, content)
            _load_through_a_file(context, pem, password)
        else:
            secret = (key or store).key_password or (key or store).password
            _check_password(key or store, secret)
            context.load_cert_chain(store.path, None if key is None else key.path, secret)
    except (ssl.SSLError, OSError, ValueError, TypeError) as wrong:
        raise ConfigurationRefused(f"{store.path}: no certificate with a key can be read from it: {wrong}") from wrong


def _check_password(store: KeyStore, password: str | None) -> None:
    """Refuse a key that needs a password and has none: OpenSSL would ask the terminal for it."""
    content = _read(store)
    if password is None and b"ENCRYPTED" in content:
        load_pem_private_key(content, None)  # says so


def _unpacked(store: KeyStore, content: bytes) -> tuple[bytes, bytes]:
    """A PKCS12 file's key and certificates as PEM, the key under a password made up for the purpose."""
    packed = _pkcs12(store, content)
    if packed.key is None or packed.cert is None:
        raise ConfigurationRefused(f"{store.path}: private key with a certificate not found")
    password = secrets.token_urlsafe().encode()
    key = packed.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password))
    chain = [packed.cert, *packed.additional_certs]
    return key + b"".join(each.certificate.public_bytes(Encoding.PEM) for each in chain), password


def _load_through_a_file(context: ssl.SSLContext, pem: bytes, password: bytes) -> None:
    """Python's ssl reads keys from files only: one that nobody else can read, and that is gone at once."""
    handle, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pem)
        context.load_cert_chain(path, password=password)
    finally:
        Path(path).unlink()


def _certificates(store: KeyStore) -> Iterable[x509.Certificate]:
    """All certificates in a trust store."""
    content = _read(store)
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
    return found


def _pkcs12(store: KeyStore, content: bytes) -> PKCS12KeyAndCertificates:
    try:
        return load_pkcs12(content, store.password.encode() if store.password else None)
    except ValueError as wrong:
        raise ConfigurationRefused(f"{store.path}: wrong password, or no PKCS12 file: {wrong}") from wrong


def _read(store: KeyStore) -> bytes:
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
