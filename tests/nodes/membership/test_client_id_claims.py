"""Test client ids on several nodes: which client is accepted, and which disconnected."""

import asyncio
from types import SimpleNamespace

import pytest

from brokerapp.core.clients.connections import ClientRegistry
from brokerapp.engine.clients.client import Client
from brokerapp.engine.policy.authorization import Principal
from brokerapp.errors import ProtocolError
from brokerapp.nodes.links.node_requests import NodeRequests
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.membership.client_id_claims import ClientIdClaims
from tests.broker_parts import part_of
from tests.nodes.parts import peers_of


class Node:
    """One of some nodes, as far as client ids go; they tell each other words by the loop."""

    def __init__(self, session: str, nodes: "dict[str, Node]"):
        self.session, self._nodes, self.silent = session, nodes, False
        self.others = list(nodes)
        for each in nodes.values():
            each.others.append(session)
        nodes[session] = self
        peers = peers_of(session, [], self.tell)
        peers.other_sessions = self.others  # to which those that come later are added
        self.connecting, self.known = part_of(ClientRegistry), NodeRequests(peers=peers)
        self.claims = ClientIdClaims(peers=peers, requests=self.known, clients=self.connecting)
        self.cut = []
        self.connecting.disconnect = lambda client: self.cut.append(client.id)

    def tell(self, session, word, *facts):
        """To one of the others."""
        part = self._nodes[session]
        if not part.silent:
            asyncio.get_running_loop().call_soon(
                {PeerMessageType.CLAIM: part.claims.on_claim, PeerMessageType.CONFIRMED: part.known.on_confirmed}[word],
                self.session,
                *facts,
            )

    def has(self, **said):
        """A client that is connected here."""
        client = a_client(**said)
        self.connecting._client_ids.setdefault(client.client_id, set()).add(client)

    async def let_in(self, *, steals=False, **said):
        """Whether a client is let in here."""
        try:
            async with self.claims.hold(a_client(**said), steals=steals):
                return True
        except ProtocolError:
            return False


def a_client(user="ada", **said):
    sink = SimpleNamespace(close=lambda: None)
    return Client("here", sink, client_id="c", has_client_id=True, principal=Principal(user), **said)


@pytest.fixture
def nodes():
    found = {}
    for session in "1357":
        Node(session, found)
    return found


@pytest.mark.parametrize(
    "said",
    [{"reconnect_ms": 60_000}, {"bridge_connection": "a way", "bridge": "b"}, {"user": "ada", "reconnect_ms": 60_000}],
)
async def test_nobody_takes_an_id_over_from_another_user_at_another_node(nodes, said):
    nodes["3"].has(user="root", reconnect_ms=60_000)
    assert not await nodes["1"].let_in(**said)
    assert nodes["3"].cut == []


async def test_who_reconnects_takes_its_id_over_from_itself_and_who_may_steal_from_anybody(nodes):
    nodes["3"].has(reconnect_ms=60_000)
    assert not await nodes["1"].let_in()
    assert await nodes["1"].let_in(reconnect_ms=60_000)
    assert nodes["3"].cut == ["here"]
    assert await nodes["1"].let_in(user="root", steals=True)
    assert nodes["3"].cut == ["here"] * 2


async def test_nobody_goes_for_a_newcomer_whom_another_node_refuses(nodes):
    nodes["3"].has(reconnect_ms=60_000)
    nodes["5"].has(user="root")
    assert not await nodes["1"].let_in(reconnect_ms=60_000)
    assert nodes["3"].cut == []


@pytest.mark.parametrize("sharers", [(), ("1",), ("5",)])
async def test_of_two_that_ask_at_the_same_time_one_is_let_in_though_one_would_share_the_id(nodes, sharers):
    asked = [nodes[each].let_in(shares_client_id=each in sharers) for each in "15"]
    assert await asyncio.gather(*asked) == [True, False]


async def test_two_that_share_an_id_are_let_in_at_the_same_time(nodes):
    asked = [nodes[each].let_in(shares_client_id=True) for each in "15"]
    assert await asyncio.gather(*asked) == [True, True]


async def test_of_two_that_ask_at_the_same_time_one_is_let_in_though_its_node_came_when_the_other_had_asked(nodes):
    nodes["5"].silent = True
    earlier = asyncio.create_task(nodes["3"].let_in())
    await asyncio.sleep(0)
    nodes["5"].silent = False
    later = Node("0", nodes)
    assert await later.let_in()
    nodes["3"].known.on_member_lost("5")
    assert not await earlier
