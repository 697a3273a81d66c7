"""Reads and writes `<sslContext>`: the files with the broker's certificate and trusted certificates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lxml import etree

from brokerapp.config.parsing.broker_config import ImportOutcome
from brokerapp.config.parsing.document import Element
from brokerapp.model.transport_connector import KeyStore, TlsStores

#: Attributes without effect, and why.
_WITHOUT_EFFECT = {
    **dict.fromkeys(("keyStoreType", "trustStoreType"), "the type is detected from the file"),
    **dict.fromkeys(
        ("secureRandomAlgorithm", "keyStoreAlgorithm", "trustStoreAlgorithm", "provider", "protocol"),
        "configures Java security, which does not exist here",
    ),
}
_FILE, _CLASS_PATH = "file:", "classpath:"


def read_ssl_context(element: Element) -> TlsStores:
    """Return the stores that the element names; it stands alone, or in another one of its name."""
    inner = element.child("sslContext") or element
    stores = TlsStores(
        key_store=_store(inner, "keyStore", key_password=inner.take("keyStoreKeyPassword")),
        key=_store(inner, "key"),
        trust_store=_store(inner, "trustStore"),
    )
    if inner.take("crlPath"):
        inner.note(ImportOutcome.IGNORED, "certificate revocation is not supported", "crlPath")
    for attribute, _ in inner.rest():
        why = _WITHOUT_EFFECT.get(attribute)
        inner.note(ImportOutcome.IGNORED if why else ImportOutcome.UNKNOWN, why or "unknown attribute", attribute)
    inner.note(ImportOutcome.TAKEN, stores.key_store.path if stores.key_store else "without a keyStore")
    return stores


def _store(element: Element, name: str, key_password: str | None = None) -> KeyStore | None:
    path, password = element.take(name), element.take(f"{name}Password")
    if not path or not path.strip():
        return None
    path = path.strip()
    for prefix in (_FILE, _CLASS_PATH):
        path = path.removeprefix(prefix)
    if path.startswith("//"):  # file:///etc/broker.p12
        path = "/" + path.lstrip("/")
    return KeyStore(path, password, key_password)


def write_ssl_context(stores: TlsStores) -> etree._Element:
    """Write `<sslContext>`."""
    element = etree.Element("sslContext")
    said: dict[str, str | None] = {}
    for name, store in (("keyStore", stores.key_store), ("key", stores.key), ("trustStore", stores.trust_store)):
        if store is not None:
            said |= {name: store.path, f"{name}Password": store.password}
    if stores.key_store is not None:
        said["keyStoreKeyPassword"] = stores.key_store.key_password
    etree.SubElement(element, "sslContext", {name: value for name, value in said.items() if value is not None})
    return element


def resolve_store_paths(stores: TlsStores, folder: Path) -> TlsStores:
    """Return the stores with relative paths taken from this folder, the one of the configuration file."""

    def placed(store: KeyStore | None) -> KeyStore | None:
        return store and replace(store, path=str(folder / store.path))

    return TlsStores(placed(stores.key_store), placed(stores.key), placed(stores.trust_store))
