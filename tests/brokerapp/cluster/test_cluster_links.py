"""Test that unreachable brokers of a cluster are reported once, in a sentence."""

import asyncio
import ssl
from types import SimpleNamespace

from brokerapp.cluster.links import ClusterLinks
from brokerapp.cluster.peer import ClusterPeer
from brokerapp.cluster.settings import ClusterMember, ClusterSettings
from brokerapp.cluster.status import MemberState
from brokerapp.connections.tls import server_context
from brokerapp.connections.tls_renewal import ClientContexts
from brokerapp.model.transport_connector import KeyStore, TlsStores
from brokerapp.network.options.address import BrokerAddress
from tests.certificates import Authority
from tests.ports import free_port


async def test_a_broker_that_is_down_is_logged_once_without_a_traceback(caplog):
    member = ClusterMember("X", BrokerAddress("127.0.0.1", free_port()))
    terms = ClusterSettings((ClusterMember("W", BrokerAddress("127.0.0.1", 1)), member), retry_ms=5)
    peer, tries = ClusterPeer(member), []
    cluster = SimpleNamespace(
        terms=terms, peers={"X": peer}, agreement="{}",
        on_peer_lost=lambda peer, why, refused=False: (tries.append(why), peer.on_lost(why, refused=refused)),
    )  # fmt: skip
    links = ClusterLinks("W", "W", cluster, ssl.create_default_context)
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
    address = BrokerAddress("127.0.0.1", server.sockets[0].getsockname()[1], tls=True)
    members = (ClusterMember("W", BrokerAddress("127.0.0.1", 1)), ClusterMember("X", address))
    terms = ClusterSettings(members, retry_ms=60_000)
    cluster = SimpleNamespace(
        terms=terms, peers={"X": ClusterPeer(terms.members[1])}, agreement="{}",
        peer_went=lambda _peer, reason, refused=False: (why.append(reason), heard.set()),
    )  # fmt: skip
    trust = ClientContexts(TlsStores(trust_store=KeyStore(str(tmp_path / "authority.pem"))))
    links = ClusterLinks("W", "W", cluster, trust)
    links.start()
    await asyncio.wait_for(heard.wait(), 20)
    assert why == []
    await links.stop()
    server.close()
