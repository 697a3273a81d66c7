"""Test one port for clients with and without TLS, in both event loops, and the answers to those without."""

from __future__ import annotations

import asyncio
import ssl
from http import HTTPStatus

import pytest
import uvloop

from brokerapp.connections.tls_renewal import ServerContext
from brokerapp.model.transport_connector import KeyStore, TlsStores
from console.ops.serving import shared_port
from console.ops.serving.https_redirect import Answer, answer_to
from console.ops.serving.shared_port import SharedPort, open_sockets
from tests.certificates import Authority

HOSTS = ["console.example", "127.0.0.1"]


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


def answer(target="/queues/?q=a", method="GET", host=b"console.example:8000", port=None, **headers: bytes) -> Answer:
    fields = [(b"host", host), *((name.encode(), value) for name, value in headers.items())]
    return answer_to(method, target, fields, HOSTS, port)


@pytest.mark.parametrize(
    ("host", "port", "location"),
    [
        (b"console.example:8000", None, "https://console.example:8000/queues/?q=a"),
        (b"console.example", None, "https://console.example/queues/?q=a"),
        (b"console.example", 8443, "https://console.example:8443/queues/?q=a"),
        (b"console.example:80", 443, "https://console.example/queues/?q=a"),
    ],
)
def test_a_page_is_led_to_at_its_own_port_or_the_public_one(host, port, location):
    assert answer(host=host, port=port) == Answer(
        HTTPStatus.PERMANENT_REDIRECT, f"Use {location.removesuffix('/queues/?q=a')}/ instead.", location
    )


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"method": "POST"}, HTTPStatus.FORBIDDEN),
        ({"authorization": b"Bearer secret"}, HTTPStatus.FORBIDDEN),
        ({"host": b"elsewhere.example"}, HTTPStatus.BAD_REQUEST),
        ({"host": b"console.example@elsewhere.example"}, HTTPStatus.BAD_REQUEST),
        ({"target": "http://elsewhere.example/"}, HTTPStatus.BAD_REQUEST),
        ({"target": "*", "method": "OPTIONS"}, HTTPStatus.BAD_REQUEST),
    ],
)
def test_nothing_else_is_led_anywhere(changed, status):
    assert (answer(**changed).status, answer(**changed).location) == (status, "")


def test_a_path_that_looks_like_a_host_stays_a_path():
    assert answer(target="//elsewhere.example/").location == "https://console.example:8000//elsewhere.example/"
