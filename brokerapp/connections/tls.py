"""TLS: files with keys and certificates (key_stores.py) -> what a listener needs to speak it.

tls_renewal.py makes such contexts anew when the files change.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path
from types import ModuleType

from brokerapp.errors import ConfigurationRefused
from brokerapp.model.transport_connector import PLAIN_TLS, ClientAuth, KeyStore, TlsOptions, TlsStores

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
    return called, calling, _key_stores().own_certificate(stores.key_store)


def _context(protocol: int, stores: TlsStores, options: TlsOptions) -> ssl.SSLContext:
    """With the broker's own certificate and those it believes."""
    context = ssl.SSLContext(protocol)
    versions = [_VERSIONS[name] for name in options.protocols] or list(_VERSIONS.values())
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    _load_identity(context, stores)
    if stores.trust_store is not None:
        for certificate in _key_stores().certificates(stores.trust_store):
            context.load_verify_locations(cadata=certificate)
    return context


def client_context(stores: TlsStores) -> ssl.SSLContext:
    """Return a bridge's TLS context: it trusts the `trustStore`, or else whom the system trusts, and
    shows the certificate of the `keyStore`, if there is one. Raises ConfigurationRefused.
    """
    context = ssl.create_default_context() if stores.trust_store is None else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if stores.trust_store is not None:
        for certificate in _key_stores().certificates(stores.trust_store):
            context.load_verify_locations(cadata=certificate)
    if stores.key_store is not None:
        _load_identity(context, stores)
    return context


def _load_identity(context: ssl.SSLContext, stores: TlsStores) -> None:
    """Put the broker's key and certificates into the context. Raises ConfigurationRefused, which names the setting."""
    key_stores, store, settings = _key_stores(), stores.key_store, stores.settings
    assert store is not None  # the callers check it
    content = _read(settings.certificate, store)
    if not content.startswith(b"0"):
        _load_pem(context, stores, store, content)
        return
    try:
        pem, password = key_stores.unpacked(store, content)
        _load_through_a_file(context, pem, password)
    except key_stores.WrongPassword as wrong:
        raise ConfigurationRefused(f"{settings.certificate}: {wrong}: set {settings.password}") from wrong
    except (ssl.SSLError, OSError, ValueError, TypeError) as wrong:
        raise ConfigurationRefused(f"{settings.certificate}: {store.path}: its key cannot be used") from wrong


def _load_pem(context: ssl.SSLContext, stores: TlsStores, store: KeyStore, content: bytes) -> None:
    """Load a certificate and its key, in one file or two."""
    settings, key = stores.settings, stores.key or store
    setting = settings.key if stores.key else settings.certificate
    key_content = _read(setting, key)
    if b"-----BEGIN CERTIFICATE-----" not in content:
        raise ConfigurationRefused(f"{settings.certificate}: {store.path}: contains no certificate")
    if b"PRIVATE KEY-----" not in key_content:
        remedy = "" if stores.key else f": set {settings.key}"
        raise ConfigurationRefused(f"{setting}: {key.path}: contains no private key{remedy}")
    secret, variable = key.key_password or key.password, settings.key_password if stores.key else settings.password
    is_locked = b"ENCRYPTED" in key_content
    if is_locked and not secret:  # OpenSSL would ask the terminal for it
        raise ConfigurationRefused(f"{setting}: {key.path}: the private key needs a password: set {variable}")
    try:
        context.load_cert_chain(store.path, key.path, secret)
    except (ssl.SSLError, OSError, ValueError, TypeError) as wrong:
        if getattr(wrong, "reason", "") == "KEY_VALUES_MISMATCH":
            why = f"the private key in {key.path} is not that of the certificate in {store.path}"
        elif is_locked:
            why = f"{key.path}: the private key cannot be read: wrong password: set {variable}"
        else:
            why = f"certificate in {store.path} with the private key in {key.path} cannot be read: a file is damaged"
        raise ConfigurationRefused(f"{setting}: {why}") from wrong


def _read(setting: str, store: KeyStore) -> bytes:
    """Return what is in a file. Raises ConfigurationRefused, which names the setting, too."""
    try:
        content: bytes = _key_stores().read_store(store)
    except ConfigurationRefused as wrong:
        raise ConfigurationRefused(f"{setting}: {wrong}") from wrong
    return content


def _load_through_a_file(context: ssl.SSLContext, pem: bytes, password: bytes) -> None:
    """Python's ssl reads keys from files only: one that nobody else can read, and that is gone at once."""
    handle, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pem)
        context.load_cert_chain(path, password=password)
    finally:
        Path(path).unlink()


def _key_stores() -> ModuleType:
    """Return the module that reads key stores, loaded when TLS is used: most nodes do without it."""
    from brokerapp.connections import key_stores

    return key_stores
