"""Links to brokers of a cluster that cannot be reached: that is said once, in a sentence."""

import asyncio
from types import SimpleNamespace

from brokerapp.cluster.links import Links
from brokerapp.cluster.peer import Peer
from brokerapp.cluster.status import MemberState
from brokerapp.cluster.terms import ClusterTerms, Member
from brokerapp.network.terms import Address
from tests.faults.processes import free_port


async def test_a_broker_that_is_down_is_logged_once_without_a_traceback(caplog):
    member = Member("X", Address("127.0.0.1", free_port()))
    terms = ClusterTerms((Member("W", Address("127.0.0.1", 1)), member), retry_ms=5)
    peer, tries = Peer(member), []
    cluster = SimpleNamespace(
        terms=terms, peers={"X": peer}, agreement="{}",
        peer_went=lambda peer, why, refused=False: (tries.append(why), peer.went(why, refused=refused)),
    )  # fmt: skip
    links = Links("W", cluster)
    links.start()
    while len(tries) < 3:
        await asyncio.sleep(0.005)
    await links.stop()
    assert (peer.state, peer.last_error) == (MemberState.DOWN, tries[0])
    [said] = caplog.records
    assert (said.levelname, said.exc_info) == ("WARNING", None)
    assert said.getMessage() == f"cluster: no link to X at {member.address}: {tries[0]}"
