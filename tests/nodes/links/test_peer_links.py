"""Test how nodes authenticate at links, and how little others can do."""

import asyncio
import shutil
import ssl
from contextlib import asynccontextmanager
from types import SimpleNamespace

import msgpack
import pytest
import uvloop

from brokerapp.connections.tls import mutual_contexts
from brokerapp.connections.tls_renewal import RenewedFromFiles
from brokerapp.model.transport_connector import KeyStore, TlsStores
from brokerapp.nodes.links import peer_links as module
from brokerapp.nodes.links.members import NodeMember, NodeMembers
from brokerapp.nodes.links.peer_links import LinkTls, NodeLinks
from brokerapp.nodes.links.protocol import PeerMessageType
from tests.certificates import PASSWORD, Authority

PATIENCE = 20.0


class Ears:
    """Keeps what it is told."""

    def __init__(self):
        self.met, self.said = asyncio.Event(), asyncio.Queue()

    def on_link_up(self, session):
        self.met.set()

    def on_link_down(self, session):
        self.met.clear()

    def on_message(self, session, word, facts):
        self.said.put_nowait((session, word, facts))


@asynccontextmanager
async def listening(session, tls=None):
    """The links of a node of this session, which others may call; `tls` may be what is asked for it."""
    links = NodeLinks(session, Ears(), tls if tls is None or callable(tls) else lambda: tls)
    links.secret = b"secret"
    await links.listen("127.0.0.1")
    try:
        yield links
    finally:
        links.close()


def call(caller, session, address):
    """Let a node call another at an address."""
    members = [NodeMember(caller.session, caller.session), NodeMember(session, session, address)]
    caller.connect_to(NodeMembers(1, members, caller.session))


async def stranger(links):
    """A connection of who knows no secret, past the challenge."""
    host, port = links.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    word, nonce = msgpack.unpackb(await reader.read(100))
    assert word == PeerMessageType.CHALLENGE
    return SimpleNamespace(reader=reader, writer=writer, nonce=nonce)


async def is_refused(someone):
    """Wait until its connection is closed, and has been told nothing."""
    try:
        return await asyncio.wait_for(someone.reader.read(100), PATIENCE) == b""
    except ConnectionResetError:
        return True
    finally:
        someone.writer.close()


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """So that nobody is refused for silence."""
    monkeypatch.setattr(module, "HANDSHAKE_SECONDS", 3 * PATIENCE)


async def test_two_nodes_know_each_other_and_say_much_at_once():
    async with listening("a") as a, listening("b") as b:
        b.listener.on_link_up = lambda session: b.send(
            session, PeerMessageType.EPOCH_DONE, "x" * 100_000
        )  # with the greeting
        call(a, "b", b.address)
        session, word, [text] = await asyncio.wait_for(a.listener.said.get(), PATIENCE)
        assert (session, word, len(text)) == ("b", PeerMessageType.EPOCH_DONE, 100_000)
        a.send("b", PeerMessageType.EPOCH, 1)
        assert await asyncio.wait_for(b.listener.said.get(), PATIENCE) == ("a", PeerMessageType.EPOCH, [1])


async def test_what_is_said_in_one_tick_waits_before_it_is_written():
    async with listening("a") as a, listening("b") as b:
        call(a, "b", b.address)
        await asyncio.wait_for(a.listener.met.wait(), PATIENCE)
        for _ in range(3):
            a.send("b", PeerMessageType.EPOCH_DONE, "x" * 100_000)
        assert 300_000 < a.unsent_bytes("b") < 301_000
        assert len((await asyncio.wait_for(b.listener.said.get(), PATIENCE))[2][0]) == 100_000
        assert not a.unsent_bytes("b")


def tls_of(folder, authority="the nodes' own"):
    """TLS with a certificate of an authority of this name."""
    folder.mkdir()
    return trusting(Authority(folder, authority))


def trusting(authority, name="node"):
    key_store = KeyStore(str(authority.issue(name).p12), PASSWORD)
    return LinkTls(*mutual_contexts(TlsStores(key_store, trust_store=KeyStore(str(authority.pem)))))


async def test_two_nodes_know_each_other_over_tls(tmp_path):
    authority = Authority(tmp_path)
    async with listening("a", trusting(authority)) as a, listening("b", trusting(authority)) as b:
        call(a, "b", b.address)
        await asyncio.wait_for(b.listener.met.wait(), PATIENCE)
        a.send("b", PeerMessageType.EPOCH, 1)
        assert await asyncio.wait_for(b.listener.said.get(), PATIENCE) == ("a", PeerMessageType.EPOCH, [1])


def test_so_they_do_at_once_in_the_event_loop_that_nodes_run_in(tmp_path):
    """It reads what a caller says before anything else happens."""

    async def meet():
        authority = Authority(tmp_path)
        async with listening("a", trusting(authority)) as a, listening("b", trusting(authority)) as b:
            call(a, "b", b.address)
            async with asyncio.timeout(module.HANDSHAKE_SECONDS - 0.5):  # the first call is answered
                await asyncio.gather(a.listener.met.wait(), b.listener.met.wait())

    uvloop.run(meet())


async def test_links_that_are_made_after_a_renewal_show_the_new_certificate_and_others_stay(tmp_path):
    authority = Authority(tmp_path)
    file = tmp_path / "b.p12"
    shutil.copy(authority.issue("first").p12, file)
    stores = TlsStores(KeyStore(str(file), PASSWORD), trust_store=KeyStore(str(authority.pem)))
    held = RenewedFromFiles(stores, lambda found: LinkTls(*mutual_contexts(found)), "links")
    async with listening("a", trusting(authority)) as a, listening("b", held.latest) as b:
        call(a, "b", b.address)
        await asyncio.wait_for(b.listener.met.wait(), PATIENCE)
        renewed = authority.issue("second")
        shutil.copy(renewed.p12, file)
        held.renew()
        a.send("b", PeerMessageType.EPOCH, 1)
        assert await asyncio.wait_for(b.listener.said.get(), PATIENCE) == ("a", PeerMessageType.EPOCH, [1])
        b.listener.met.clear()
        a.reconnect("b")
        await asyncio.wait_for(b.listener.met.wait(), PATIENCE)
        host, port = b.address.split(":")
        shown = await asyncio.to_thread(ssl.get_server_certificate, (host, int(port)))
        assert ssl.PEM_cert_to_DER_cert(shown) == renewed.der


@pytest.mark.parametrize("who", ["a stranger", "nobody"])
async def test_a_node_whose_certificate_nobody_vouches_for_is_not_known_and_that_is_told(tmp_path, caplog, who):
    caller = None if who == "nobody" else tls_of(tmp_path / "other", who)
    async with listening("a", caller) as a, listening("b", tls_of(tmp_path / "own")) as b:
        call(a, "b", b.address)
        if caller is not None:
            while "trusted TLS certificate" not in caplog.text:
                await asyncio.sleep(0.01)
        else:
            await asyncio.sleep(3 * module.RETRY_SECONDS)
        assert not a.listener.met.is_set()
        assert not b.listener.met.is_set()


async def test_who_stands_between_two_nodes_with_a_certificate_they_believe_is_known_to_neither(tmp_path):
    authority = Authority(tmp_path)
    between = trusting(authority, "between")
    async with listening("a", trusting(authority)) as a, listening("b", trusting(authority, "b")) as b:
        relaying, passed_on = [], asyncio.Event()

        async def copy(reader, writer):
            while data := await reader.read(1000):
                writer.write(data)
                passed_on.set()
            writer.close()

        async def relay(reader, writer):
            there = await asyncio.open_connection(*b.address.split(":"), ssl=between.client)
            relaying.extend(asyncio.create_task(each) for each in (copy(there[0], writer), copy(reader, there[1])))

        server = await asyncio.start_server(relay, "127.0.0.1", 0, ssl=between.server)
        call(a, "b", "{}:{}".format(*server.sockets[0].getsockname()))
        await asyncio.wait_for(passed_on.wait(), PATIENCE)
        await asyncio.wait(relaying[:2], timeout=PATIENCE)  # b ends it, and a with it
        assert not a.listener.met.is_set()
        assert not b.listener.met.is_set()
        server.close()


async def test_who_does_not_even_begin_to_speak_tls_is_not_waited_for_long(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "HANDSHAKE_SECONDS", 0.1)
    async with listening("b", tls_of(tmp_path / "own")) as b:
        reader, writer = await asyncio.open_connection(*b.address.split(":"))
        assert await is_refused(SimpleNamespace(reader=reader, writer=writer))


async def test_who_is_not_known_can_not_say_much():
    async with listening("b") as b:
        someone = await stranger(b)
        someone.writer.write(msgpack.packb((int(PeerMessageType.HELLO), bytes(module.MAX_HANDSHAKE)))[:-1])
        assert await is_refused(someone)


async def test_of_too_many_who_are_not_known_the_one_who_waits_longest_goes(monkeypatch):
    monkeypatch.setattr(module, "MAX_UNAUTHENTICATED", 2)
    async with listening("b") as b:
        someones = [await stranger(b) for _ in range(3)]
        assert await is_refused(someones[0])
        assert not any(each.reader.at_eof() for each in someones[1:])
        for each in someones[1:]:
            each.writer.close()


async def test_who_has_not_begun_to_speak_tls_counts_among_those_who_are_not_known(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_UNAUTHENTICATED", 2)
    authority = Authority(tmp_path)
    async with listening("a", trusting(authority)) as a, listening("b", trusting(authority)) as b:
        silent = [await asyncio.open_connection(*b.address.split(":")) for _ in range(3)]
        assert await is_refused(SimpleNamespace(reader=silent[0][0], writer=silent[0][1]))
        assert not any(reader.at_eof() for reader, _ in silent[1:])
        call(a, "b", b.address)
        await asyncio.wait_for(b.listener.met.wait(), PATIENCE)  # at the cost of who waits longest
        assert await is_refused(SimpleNamespace(reader=silent[1][0], writer=silent[1][1]))
        silent[2][1].close()


async def test_a_proof_that_was_meant_for_another_node_is_worth_nothing():
    async with listening("a") as a, listening("b") as b:
        someone = await stranger(b)
        hello = asyncio.get_running_loop().create_future()

        async def relay(reader, writer):
            writer.write(msgpack.packb((int(PeerMessageType.CHALLENGE), someone.nonce)))
            hello.set_result(await reader.read(1000))
            writer.close()

        server = await asyncio.start_server(relay, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        call(a, "c", f"{host}:{port}")  # it means c
        someone.writer.write(await asyncio.wait_for(hello, PATIENCE))
        assert await is_refused(someone)
        assert not b.listener.met.is_set()
        server.close()


async def test_a_node_that_another_answers_for_is_not_known():
    async with listening("a") as a, listening("b") as b:
        call(a, "c", b.address)
        await asyncio.sleep(3 * module.RETRY_SECONDS)
        assert not a.listener.met.is_set()
        assert not b.listener.met.is_set()


async def test_a_node_that_is_a_member_no_more_and_does_not_know_it_is_not_linked_again():
    async with listening("a") as a, listening("b") as b:
        both = [NodeMember("a", "a"), NodeMember("b", "b", b.address)]
        b.connect_to(NodeMembers(1, both, "b"))
        a.connect_to(NodeMembers(1, both, "a"))
        await asyncio.wait_for(b.listener.met.wait(), PATIENCE)
        b.connect_to(NodeMembers(2, both[1:], "b"))
        while b.listener.met.is_set():
            await asyncio.sleep(0.01)
        await asyncio.sleep(3 * module.RETRY_SECONDS)  # it calls
        assert not b.listener.met.is_set()
        b.send("a", PeerMessageType.EPOCH, 2)
        assert a.listener.said.empty()
