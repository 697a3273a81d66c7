"""Test one port for clients with and without TLS, in both event loops, and how failed handshakes are reported."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl

import pytest
import uvloop

from brokerapp.connections import shared_port
from brokerapp.connections.log_throttle import MAX_REMEMBERED
from brokerapp.connections.shared_port import SharedPort, open_sockets
from brokerapp.connections.tls_renewal import ServerContext
from brokerapp.model.transport_connector import KeyStore, TlsStores
from tests.certificates import Authority


class Saying(asyncio.Protocol):
    """Says its name and what it was told, and closes."""

    def __init__(self, name: bytes) -> None:
        self._name = name

    def connection_made(self, transport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(self._name + b" " + data)
        self._transport.close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_clients_with_and_without_tls_get_their_protocol_with_all_that_they_sent(authority, run):
    context = ServerContext(TlsStores(KeyStore(str(authority.issue("port").pem))))
    trust = ssl.create_default_context(cafile=authority.pem)

    async def ask(port: int, data: bytes, tls: ssl.SSLContext | None = None) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
        writer.write(data)
        answer = await reader.read()
        writer.close()
        return answer

    async def meet() -> None:
        sockets = open_sockets("127.0.0.1", 0)
        number = sockets[0].getsockname()[1]
        port = SharedPort(sockets, context, lambda: Saying(b"encrypted"), lambda: Saying(b"plain"))
        async with asyncio.timeout(20):
            answers = await asyncio.gather(
                *(ask(number, b"%d" % each, trust if each % 2 else None) for each in range(20))
            )
        assert answers == [(b"encrypted %d" if each % 2 else b"plain %d") % each for each in range(20)]
        port.close()
        await port.wait_closed()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", number)

    run(meet())


async def test_a_client_that_sends_nothing_is_let_go(authority, monkeypatch):
    monkeypatch.setattr(shared_port, "FIRST_BYTE_SECONDS", 0.05)
    context = ServerContext(TlsStores(KeyStore(str(authority.issue("silent").pem))))
    sockets = open_sockets("127.0.0.1", 0)
    port = SharedPort(sockets, context, lambda: Saying(b"encrypted"), lambda: Saying(b"plain"))
    reader, writer = await asyncio.open_connection(*sockets[0].getsockname())
    async with asyncio.timeout(20):
        assert await reader.read() == b""
    writer.close()
    port.close()
    await port.wait_closed()


def attempt(address: tuple[str, int], tls: ssl.SSLContext | None, data: bytes = b"") -> int:
    """Connect as a program does that sends the alert when it refuses; return the port that it came from."""
    with socket.create_connection(address, timeout=20) as client:
        own = client.getsockname()[1]
        with contextlib.suppress(OSError):
            if tls is not None:
                client = tls.wrap_socket(client, server_hostname="127.0.0.1")
            client.sendall(data)
            client.recv(1)
    return own


async def serve(context: ssl.SSLContext, attempts: list[tuple[ssl.SSLContext | None, bytes]]) -> list[int]:
    """Let clients connect, one after the other, to a port with TLS only; return the ports that they came from."""
    sockets = open_sockets("127.0.0.1", 0)
    port = SharedPort(sockets, context, lambda: Saying(b"encrypted"), name="connector ssl")
    address, own = sockets[0].getsockname(), []
    async with asyncio.timeout(20):
        for tls, data in attempts:
            own.append(await asyncio.to_thread(attempt, address, tls, data))
        while port._starting:
            await asyncio.sleep(0.01)
    port.close()
    await port.wait_closed()
    return own


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_failed_handshake_is_reported_with_address_port_and_reason_once_a_minute(authority, run, caplog):
    context = ServerContext(TlsStores(KeyStore(str(authority.issue("reported").pem))))
    distrusting = ssl.create_default_context()
    attempts = [(distrusting, b""), (distrusting, b""), (None, b"GET / HTTP/1.1\r\n\r\n")]
    first, _, third = run(serve(context, attempts))
    assert [each.getMessage() for each in caplog.records if each.name == shared_port.__name__] == [
        f"connector ssl: TLS handshake with 127.0.0.1:{first} failed: the client does not trust the authority that "
        "signed the certificate",
        f"connector ssl: TLS handshake with 127.0.0.1:{third} failed: the client spoke HTTP without TLS",
    ]


async def test_a_scan_from_many_addresses_is_reported_a_limited_number_of_times(authority, caplog):
    context = ServerContext(TlsStores(KeyStore(str(authority.issue("scanned").pem))))
    sockets = open_sockets("127.0.0.1", 0)
    port = SharedPort(sockets, context, lambda: Saying(b"encrypted"))
    for number in range(10 * MAX_REMEMBERED):
        port._report((f"10.0.{number // 250}.{number % 250}", 4711), ConnectionResetError())
    port.close()
    assert len(caplog.records) == MAX_REMEMBERED + 1


async def test_a_probe_that_sends_nothing_is_not_reported(authority, caplog):
    context = ServerContext(TlsStores(KeyStore(str(authority.issue("probed").pem))))
    sockets = open_sockets("127.0.0.1", 0)
    port = SharedPort(sockets, context, lambda: Saying(b"encrypted"))
    _, writer = await asyncio.open_connection(*sockets[0].getsockname())
    writer.close()
    async with asyncio.timeout(20):
        await writer.wait_closed()
        while port._starting:
            await asyncio.sleep(0.01)
    port.close()
    await port.wait_closed()
    assert caplog.records == []


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TimeoutError(), "the client did not finish it in time"),
        (ConnectionAbortedError("SSL handshake is taking longer"), "the client did not finish it in time"),
        (ConnectionResetError(), "the client closed the connection"),
    ],
)
def test_what_the_event_loops_say_of_a_handshake_is_said_in_plain_words(error, reason):
    assert shared_port.describe_failure(error) == reason
