"""Read which files hold the certificate of an installation (`make run`): broker, console and checks use the same."""

from __future__ import annotations

from brokerapp.model.transport_connector import ENVIRONMENT_SETTINGS, KeyStore, TlsStores
from brokerapp.system.environment import Environment


def tls_stores(environment: Environment) -> TlsStores:
    """Return the key store of SLUICE_TLS_CERTIFICATE, SLUICE_TLS_KEY and SLUICE_TLS_PASSWORD."""
    certificate, key, password = environment.tls_certificate, environment.tls_key, environment.tls_password
    return TlsStores(
        key_store=KeyStore(certificate, password) if certificate else None,
        key=KeyStore(key, password) if key else None,
        settings=ENVIRONMENT_SETTINGS,
    )
