"""Test key stores and trust stores, and the errors for unreadable ones."""

import shutil
import ssl
import subprocess

import pytest

from brokerapp.connections.tls import server_context
from brokerapp.errors import ConfigurationRefused
from brokerapp.model.transport_connector import ENVIRONMENT_SETTINGS, ClientAuth, KeyStore, TlsOptions, TlsStores
from tests.certificates import PASSWORD, Authority, shake_hands


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(authority):
    return authority.issue("broker")


def hands_shaken(server: ssl.SSLContext, authority, client=None) -> str:
    """Shake hands with such a server, in memory: the version of TLS that is spoken then."""
    ours, theirs = shake_hands(server, authority, client)
    theirs.write(b"hello")
    assert ours.read() == b"hello"
    return ours.version()


def stores(broker, kind: str) -> TlsStores:
    return {
        "PKCS12": TlsStores(KeyStore(str(broker.p12), PASSWORD)),
        "PEM in one file": TlsStores(KeyStore(str(broker.pem))),
        "PEM in two files": TlsStores(KeyStore(str(broker.crt)), KeyStore(str(broker.key))),
        "PEM with a locked key": TlsStores(KeyStore(str(broker.crt)), KeyStore(str(broker.locked_key), PASSWORD)),
    }[kind]


@pytest.mark.parametrize("kind", ["PKCS12", "PEM in one file", "PEM in two files", "PEM with a locked key"])
def test_a_certificate_is_read_as(kind, authority, broker):
    assert hands_shaken(server_context(stores(broker, kind)), authority) == "TLSv1.3"


def test_only_the_protocols_enabled_are_spoken(authority, broker):
    options = TlsOptions(protocols=("TLSv1.2",))
    assert hands_shaken(server_context(stores(broker, "PKCS12"), options), authority) == "TLSv1.2"


@pytest.mark.parametrize("trusted", ["authority.pem", "trusted.p12"])
def test_a_client_shows_a_certificate_where_one_is_needed(authority, broker, trusted):
    if trusted == "trusted.p12":
        authority.issue("trusted")  # its file holds the authority's certificate as well
    trust = KeyStore(str(authority.folder / trusted), PASSWORD)
    both = TlsStores(KeyStore(str(broker.p12), PASSWORD), trust_store=trust)
    needed = server_context(both, TlsOptions(ClientAuth.NEEDED))
    assert hands_shaken(needed, authority, client=authority.issue("client"))
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        hands_shaken(needed, authority)
    assert hands_shaken(server_context(both, TlsOptions(ClientAuth.WANTED)), authority)


def test_a_stranger_s_certificate_is_not_believed(authority, broker, tmp_path):
    both = TlsStores(KeyStore(str(broker.p12), PASSWORD), trust_store=KeyStore(str(authority.pem)))
    stranger = Authority(tmp_path, "Somebody Else").issue("client")
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        hands_shaken(server_context(both, TlsOptions(ClientAuth.WANTED)), authority, client=stranger)


@pytest.mark.scenario("ST-46")
def test_handshakes_are_not_repeated_at_a_client_s_wish(broker):
    assert server_context(stores(broker, "PKCS12")).options & ssl.OP_NO_RENEGOTIATION


def refusal(stores: TlsStores, options: TlsOptions | None = None) -> str:
    with pytest.raises(ConfigurationRefused) as caught:
        server_context(stores, *([options] if options else []))
    return str(caught.value)


def test_what_cannot_be_used_is_named_with_the_reason(authority, broker, tmp_path):
    assert "needs a certificate" in refusal(TlsStores())
    assert "without a trustStore" in refusal(stores(broker, "PKCS12"), TlsOptions(ClientAuth.NEEDED))
    assert "No such file" in refusal(TlsStores(KeyStore(str(tmp_path / "none.p12"))))
    assert "wrong password" in refusal(TlsStores(KeyStore(str(broker.p12), "guess")))
    assert "needs a password" in refusal(TlsStores(KeyStore(str(broker.p12))))
    assert "contains no private key: set key" in refusal(TlsStores(KeyStore(str(broker.crt))))
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"something else")
    assert "neither PKCS12 nor PEM" in refusal(TlsStores(KeyStore(str(garbage))))


def test_the_setting_to_correct_is_named_without_the_words_of_openssl(authority, broker, tmp_path):
    def said(key=None, password=None, certificate=broker.crt) -> str:
        own = KeyStore(str(key), password) if key else None
        return refusal(TlsStores(KeyStore(str(certificate), password), own, settings=ENVIRONMENT_SETTINGS))

    other = authority.issue("other")
    assert said() == f"SLUICE_TLS_CERTIFICATE: {broker.crt}: contains no private key: set SLUICE_TLS_KEY"
    assert said(other.key) == (
        f"SLUICE_TLS_KEY: the private key in {other.key} is not that of the certificate in {broker.crt}"
    )
    locked = f"SLUICE_TLS_KEY: {broker.locked_key}: the private key"
    assert said(broker.locked_key) == f"{locked} needs a password: set SLUICE_TLS_PASSWORD"
    assert said(broker.locked_key, "guess") == f"{locked} cannot be read: wrong password: set SLUICE_TLS_PASSWORD"
    assert said(tmp_path / "none.key") == f"SLUICE_TLS_KEY: {tmp_path}/none.key: No such file or directory"
    assert said(password="guess", certificate=broker.p12) == (
        f"SLUICE_TLS_CERTIFICATE: {broker.p12}: wrong password, or the file is damaged: set SLUICE_TLS_PASSWORD"
    )


def test_a_java_keystore_is_refused_with_the_command_that_converts_it(tmp_path):
    store = tmp_path / "broker.ks"
    store.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    said = refusal(TlsStores(KeyStore(str(store), PASSWORD)))
    assert "JKS" in said
    assert f"keytool -importkeystore -srckeystore {store} -destkeystore {store}.p12 -deststoretype PKCS12" in said


@pytest.mark.skipif(shutil.which("keytool") is None, reason="no Java: its keytool is missing")
def test_the_command_makes_what_can_be_read(tmp_path):
    store = tmp_path / "broker.ks"
    made = ["keytool", "-genkeypair", "-storetype", "JKS", "-keystore", store, "-storepass", "password"]
    key = ["-keypass", "password", "-keyalg", "RSA", "-dname", "CN=localhost"]
    subprocess.run([*made, *key], check=True, capture_output=True, timeout=60)
    said = refusal(TlsStores(KeyStore(str(store), "password")))
    command = said[said.index("keytool") :].split()
    more = ["-srcstorepass", "password", "-deststorepass", "password"]
    subprocess.run([*command, *more], check=True, capture_output=True, timeout=60)
    assert server_context(TlsStores(KeyStore(f"{store}.p12", "password")))
