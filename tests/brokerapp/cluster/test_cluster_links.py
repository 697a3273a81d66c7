"""Links to brokers of a cluster that cannot be reached: that is said once, in a sentence."""

import asyncio
import ssl
from types import SimpleNamespace

from brokerapp.cluster.links import Links
from brokerapp.cluster.peer import Peer
from brokerapp.cluster.settings import ClusterTerms, Member
from brokerapp.cluster.status import MemberState
from brokerapp.model.transport_connector import KeyStore, TlsStores
from brokerapp.network.options.options import Address
from brokerapp.stomp.transport.tls import ClientContexts, server_context
from tests.certificates import Authority
from tests.ports import free_port


async def test_a_broker_that_is_down_is_logged_once_without_a_traceback(caplog):
    member = Member("X", Address("127.0.0.1", free_port()))
    terms = ClusterTerms((Member("W", Address("127.0.0.1", 1)), member), retry_ms=5)
    peer, tries = Peer(member), []
    cluster = SimpleNamespace(
        terms=terms, peers={"X": peer}, agreement="{}",
        peer_went=lambda peer, why, refused=False: (tries.append(why), peer.went(why, refused=refused)),
    )  # fmt: skip
    links = Links("W", cluster, ssl.create_default_context)
    links.start()
    while len(tries) < 3:
        await asyncio.sleep(0.005)
    await links.stop()
    assert (peer.state, peer.last_error) == (MemberState.DOWN, tries[0])
    [said] = caplog.records
    assert (said.levelname, said.exc_info) == ("WARNING", None)
    assert said.getMessage() == f"cluster: no link to X at {member.address}: {tries[0]}"


async def test_a_broker_that_speaks_tls_is_believed_by_the_trust_store_of_this_one(tmp_path):
    theirs = TlsStores(KeyStore(str(Authority(tmp_path).issue("X").pem)))
    heard, why = asyncio.Event(), []
    server = await asyncio.start_server(lambda *_: heard.set(), "127.0.0.1", 0, ssl=server_context(theirs))
    address = Address("127.0.0.1", server.sockets[0].getsockname()[1], tls=True)
    terms = ClusterTerms((Member("W", Address("127.0.0.1", 1)), Member("X", address)), retry_ms=60_000)
    cluster = SimpleNamespace(
        terms=terms, peers={"X": Peer(terms.members[1])}, agreement="{}",
        peer_went=lambda _peer, reason, refused=False: (why.append(reason), heard.set()),
    )  # fmt: skip
    links = Links("W", cluster, ClientContexts(TlsStores(trust_store=KeyStore(str(tmp_path / "authority.pem")))))
    links.start()
    await asyncio.wait_for(heard.wait(), 20)
    assert why == []
    await links.stop()
    server.close()
