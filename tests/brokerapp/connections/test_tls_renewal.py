"""Test that TLS contexts follow their files: new connections get what is there now, broken files change nothing."""

import asyncio
import logging
import os
import shutil
import ssl
import tempfile
from pathlib import Path

import pytest

from brokerapp.connections import tls_renewal
from brokerapp.connections.tls_renewal import ClientContexts, RenewedFromFiles, ServerContext, keep_renewed
from brokerapp.errors import ConfigurationRefused
from brokerapp.model.transport_connector import ClientAuth, KeyStore, TlsOptions, TlsStores
from tests.certificates import PASSWORD, Authority, shake_hands

#: A user who may read what everybody may.
NOBODY = 65534


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


def shown(server: ssl.SSLContext, authority, client=None) -> bytes:
    """The certificate that a client of such a server is shown, in memory."""
    return shake_hands(server, authority, client)[0].getpeercert(binary_form=True)


class Certbot:
    """Renews as certbot does: numbered files in one folder, and symbolic links to the newest in another."""

    def __init__(self, folder: Path, authority: Authority) -> None:
        self._folder, self._authority, self._number = folder, authority, 0
        self.chain, self.key = folder / "live/fullchain.pem", folder / "live/privkey.pem"
        for each in ("live", "archive"):
            (folder / each).mkdir()

    @property
    def stores(self) -> TlsStores:
        return TlsStores(KeyStore(str(self.chain)), KeyStore(str(self.key)))

    def renew(self, **more):
        self._number += 1
        identity = self._authority.issue(f"broker{self._number}", folder=self._folder / "archive", **more)
        for link, file in ((self.chain, identity.crt), (self.key, identity.key)):
            new = link.with_suffix(".new")
            new.symlink_to(file)
            new.replace(link)
        return identity


@pytest.fixture
def certbot(authority, tmp_path):
    return Certbot(tmp_path, authority)


def test_what_certbot_renews_is_shown_to_new_connections(authority, certbot):
    first = certbot.renew()
    server = ServerContext(certbot.stores)
    assert shown(server, authority) == first.der
    second = certbot.renew()
    assert shown(server, authority) == first.der, "not before the files are looked at"
    server.held.renew()
    assert shown(server, authority) == second.der


def test_the_former_certificate_is_shown_no_more_when_the_kind_of_key_changes(authority, certbot):
    certbot.renew(rsa_key=True)
    server = ServerContext(certbot.stores)
    second = certbot.renew()
    server.held.renew()
    assert shown(server, authority) == second.der


def test_a_pkcs12_file_that_is_replaced_is_read_again(authority, tmp_path):
    file = tmp_path / "broker.p12"
    shutil.copy(authority.issue("one").p12, file)
    server = ServerContext(TlsStores(KeyStore(str(file), PASSWORD)))
    second = authority.issue("two")
    shutil.copy(second.p12, file)
    server.held.renew()
    assert shown(server, authority) == second.der


def test_a_broken_file_changes_nothing_and_is_reported_once_until_it_is_mended(authority, certbot, caplog):
    first = certbot.renew()
    server = ServerContext(certbot.stores, use="connectors")
    certbot.chain.resolve().write_bytes(b"-----BEGIN CERTIFICATE-----\nnothing\n")
    for _ in range(3):
        server.held.renew()
    assert shown(server, authority) == first.der
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert "connectors: changed files cannot be used, the previous ones stay in use" in record.message
    assert str(certbot.chain) in server.held.problem
    second = certbot.renew()
    server.held.renew()
    assert shown(server, authority) == second.der
    assert not server.held.problem


def test_a_certificate_that_comes_expired_is_reported(authority, certbot, caplog):
    certbot.renew()
    server = ServerContext(certbot.stores, use="connectors")
    certbot.renew(days=-2)
    server.held.renew()
    [record] = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert f"connectors: the certificate in {certbot.chain} expired on 20" in record.message


def test_a_key_without_its_certificate_is_not_used(authority, certbot):
    first = certbot.renew()
    server = ServerContext(certbot.stores)
    certbot.key.unlink()
    certbot.key.symlink_to(authority.issue("another").key)
    server.held.renew()
    assert shown(server, authority) == first.der
    assert "is not that of the certificate in" in server.held.problem


def half(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


#: What may befall the files of a renewed certificate, for a moment or longer.
FAULTS = {
    "the certificate is half written": lambda certbot, _: half(certbot.chain),
    "the key is half written": lambda certbot, _: half(certbot.key),
    "the certificate is empty": lambda certbot, _: certbot.chain.write_bytes(b""),
    "the certificate is binary": lambda certbot, _: certbot.chain.write_bytes(os.urandom(900)),
    "the certificate is a folder": lambda certbot, _: (certbot.chain.unlink(), certbot.chain.mkdir()),
    "the certificate is missing": lambda certbot, _: certbot.chain.unlink(),
    "the key is missing": lambda certbot, _: certbot.key.unlink(),
    "the key is of another certificate": lambda certbot, other: shutil.copy(other.key, certbot.key),
    "the key is encrypted": lambda certbot, other: shutil.copy(other.locked_key, certbot.key),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_whatever_befalls_the_files_the_former_certificate_is_shown_until_they_are_right(
    fault, authority, certbot, caplog, monkeypatch
):
    monkeypatch.setattr(tls_renewal, "CHECK_SECONDS", 0.01)
    first, other = certbot.renew(), authority.issue("other")
    context = ServerContext(certbot.stores, use="connectors")
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]

    async def served() -> bytes:
        text = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))
        return ssl.PEM_cert_to_DER_cert(text)

    watching = asyncio.create_task(keep_renewed([context.held]))
    FAULTS[fault](certbot, other)
    async with asyncio.timeout(20):
        while not context.held.problem:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)  # it is looked at several times
    assert await served() == first.der
    [record] = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert "the previous ones stay in use" in record.message

    if certbot.chain.is_dir():
        certbot.chain.rmdir()
    second = certbot.renew()
    async with asyncio.timeout(20):
        while await served() != second.der:
            await asyncio.sleep(0.01)
    assert not context.held.problem
    watching.cancel()
    server.close()


def test_a_key_that_this_user_may_read_again_is_read_again(authority):
    if os.geteuid():
        pytest.skip("only root can become another user")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        one = authority.issue("one", folder=folder)
        server = ServerContext(TlsStores(KeyStore(str(one.crt)), KeyStore(str(one.key))))
        second = authority.issue("two", folder=folder)
        for old, new in ((one.crt, second.crt), (one.key, second.key)):
            new.replace(old)
        one.key.chmod(0o600)
        renew_as_nobody(server)
        assert "Permission denied" in server.held.problem
        assert shown(server, authority) == one.der
        one.key.chmod(0o644)
        renew_as_nobody(server)
        assert not server.held.problem
        assert shown(server, authority) == second.der


def renew_as_nobody(server: ServerContext) -> None:
    os.seteuid(NOBODY)
    try:
        server.held.renew()
    finally:
        os.seteuid(0)


def test_an_error_that_no_file_explains_is_tried_again_and_does_not_end_the_renewal(caplog, tmp_path):
    file, tries = tmp_path / "store", []
    file.write_text("1")

    def make(_stores: TlsStores) -> int:
        tries.append(1)
        if len(tries) in (2, 3):
            raise OSError(24, "Too many open files")
        return len(tries)

    held = RenewedFromFiles(TlsStores(KeyStore(str(file))), make, "connectors")
    file.write_text("12")
    for _ in range(2):
        held.renew()
        assert (held.latest(), "Too many open files" in held.problem) == (1, True)
    held.renew()
    assert (held.latest(), held.problem) == (4, "")
    assert [each.levelno for each in caplog.records].count(logging.ERROR) == 1


def test_clients_are_trusted_by_the_trust_store_as_it_is_now(authority, certbot, tmp_path):
    certbot.renew()
    trusted, other = tmp_path / "trusted.pem", Authority(tmp_path, "Another Authority")
    shutil.copy(authority.pem, trusted)
    stores = TlsStores(KeyStore(str(certbot.chain)), KeyStore(str(certbot.key)), KeyStore(str(trusted)))
    server = ServerContext(stores, TlsOptions(ClientAuth.NEEDED))
    client = authority.issue("client")
    assert shown(server, authority, client)
    shutil.copy(other.pem, trusted)
    server.held.renew()
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        shown(server, authority, client)


async def test_files_are_looked_at_again_and_again(authority, certbot, monkeypatch):
    monkeypatch.setattr(tls_renewal, "CHECK_SECONDS", 0.01)
    certbot.renew()
    server = ServerContext(certbot.stores)
    watching = asyncio.create_task(keep_renewed([server.held, server.held]))
    for _ in range(2):
        renewed = certbot.renew()
        async with asyncio.timeout(20):
            while shown(server, authority) != renewed.der:
                await asyncio.sleep(0.01)
    watching.cancel()


def test_a_certificate_that_cannot_be_used_from_the_start_is_refused(tmp_path):
    with pytest.raises(ConfigurationRefused, match="No such file"):
        ServerContext(TlsStores(KeyStore(str(tmp_path / "none.p12"))))


def test_the_files_of_clients_are_read_once_until_they_change(authority, tmp_path):
    pem = Path(shutil.copy(authority.pem, tmp_path))
    contexts = ClientContexts(TlsStores(trust_store=KeyStore(str(pem))))
    first = contexts()
    assert contexts() is first
    os.utime(pem, ns=(1, 1))
    second = contexts()
    assert second is not first
    pem.unlink()
    assert contexts() is second, "what was read last stays in use"


def test_clients_are_refused_files_that_could_never_be_used(tmp_path):
    contexts = ClientContexts(TlsStores(trust_store=KeyStore(str(tmp_path / "none.pem"))))
    with pytest.raises(ConfigurationRefused, match="No such file"):
        contexts()
