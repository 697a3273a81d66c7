"""Test live nodes that do not reach each other: reported, resolved by one that leaves, or refused."""

import pytest

from brokerapp.errors import ConfigurationRefused, Fenced, NodeIsolated, StoreUnavailable
from brokerapp.nodes.links.link_address import LinkAddress, check_link_address
from brokerapp.nodes.links.members import NodeMember
from brokerapp.nodes.links.unreachable_peers import STEP_DOWN_TIMEOUTS, WARN_TIMEOUTS, UnreachablePeers
from brokerapp.nodes.membership.liveness import HEARTBEATS_PER_TIMEOUT
from brokerapp.nodes.membership.restart_backoff import (
    FIRST_ISOLATED_PAUSE,
    LONGEST_ISOLATED_PAUSE,
    STABLE_SECONDS,
    STORE_UNAVAILABLE_PAUSE,
    RestartBackoff,
)
from tests.waiting import wait_until

FIRST, LAST = NodeMember("first", "1"), NodeMember("last", "9")


def test_a_live_member_without_a_link_is_named_once_until_it_is_linked_again():
    silences, due = UnreachablePeers("5", timeout=5), WARN_TIMEOUTS * 5
    assert silences.update([FIRST], 100) == []
    assert silences.update([FIRST], 99 + due) == []
    assert silences.update([FIRST, LAST], 100 + due) == [FIRST]
    assert silences.update([FIRST], 101 + due) == []
    assert silences.update([], 110) == []
    assert silences.update([FIRST], 120) == []
    assert silences.update([FIRST], 120 + due) == [FIRST]


def test_a_killed_node_is_expelled_before_anybody_is_told_of_its_silence():
    assert WARN_TIMEOUTS >= 1 + 2 / HEARTBEATS_PER_TIMEOUT, "a beat lasts a timeout, and is looked for once a period"


@pytest.mark.parametrize(("silent", "stronger"), [(FIRST, FIRST), (LAST, None)])
def test_of_two_that_do_not_reach_each_other_one_steps_back(silent, stronger):
    silences = UnreachablePeers("5", timeout=5)
    silences.update([silent], 100)
    assert silences.should_yield_to(100 + STEP_DOWN_TIMEOUTS * 5 - 1) is None
    assert silences.should_yield_to(100 + STEP_DOWN_TIMEOUTS * 5) == stronger


@pytest.mark.parametrize("link", ["127.0.0.1", "localhost", "::1"])
def test_an_address_of_one_machine_is_refused_where_the_store_is_on_another(link):
    with pytest.raises(ConfigurationRefused, match=f"--link {link}.*redis.example.org"):
        check_link_address("a", LinkAddress(link), "redis://redis.example.org:6379/0")


@pytest.mark.parametrize("url", ["redis://127.0.0.1:6379/0", "redis://localhost", "unix:///run/redis.sock"])
def test_an_address_of_one_machine_does_where_the_store_is_there_too(url):
    check_link_address("a", LinkAddress("127.0.0.1"), url)


def test_an_address_that_others_reach_does_everywhere():
    check_link_address("a", LinkAddress("10.0.0.7"), "redis://redis.example.org:6379/0")


def test_of_an_address_beyond_this_machine_without_tls_is_warned(caplog):
    check_link_address("a", LinkAddress("10.0.0.7"), "redis://localhost")
    assert "--link ssl://10.0.0.7 encrypts them" in caplog.text
    caplog.clear()
    check_link_address("a", LinkAddress("10.0.0.7", tls=True), "redis://localhost")
    check_link_address("a", LinkAddress("127.0.0.1"), "redis://localhost")
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("text", "reach"),
    [
        ("10.0.0.7", LinkAddress("10.0.0.7")),
        ("ssl://node.example.org", LinkAddress("node.example.org", tls=True)),
        ("::1", LinkAddress("::1")),
        ("ssl://[::1]", LinkAddress("::1", tls=True)),
    ],
)
def test_where_a_node_is_reached_is_an_address_or_one_for_tls(text, reach):
    assert LinkAddress.parse(text) == reach


@pytest.mark.parametrize("text", ["", "ssl://", "tcp://10.0.0.7", "10.0.0.7:1", "ssl://[::1]:1", "ssl://host/x"])
def test_anything_else_is_refused_by_name(text):
    with pytest.raises(ConfigurationRefused, match=r"--link .*without a port"):
        LinkAddress.parse(text)


@pytest.mark.parametrize("text", ["0.0.0.0", "::", "ssl://[::]", "ssl://0.0.0.0"])
def test_what_stands_for_all_addresses_of_a_machine_is_refused_as_nobody_can_call_it(text):
    with pytest.raises(ConfigurationRefused, match=r"--link .*name the one address"):
        LinkAddress.parse(text)


def test_a_node_that_stepped_back_waits_longer_each_time_and_one_that_was_expelled_begins_at_once():
    rejoining, error = RestartBackoff(), NodeIsolated("b lives")
    assert [rejoining.delay(error, False, 40) for _ in range(7)] == [30, 60, 120, 240, 480, 600, 600]
    assert rejoining.delay(error, False, LONGEST_ISOLATED_PAUSE + 1) == FIRST_ISOLATED_PAUSE
    assert rejoining.delay(Fenced(), True, 1) == 0
    assert rejoining.delay(Fenced(), False, 1) is None
    assert rejoining.delay(OSError(), False, 1) is None


def test_a_node_that_is_expelled_again_and_again_rests_longer_each_time_until_it_ran_for_a_while():
    rejoining = RestartBackoff()
    assert [rejoining.delay(Fenced(), True, 1) for _ in range(9)] == [0, 1, 2, 4, 8, 16, 32, 60, 60]
    assert [rejoining.delay(Fenced(), True, lasted) for lasted in (STABLE_SECONDS + 1, 1)] == [0, 1]


def test_a_node_that_joins_again_waits_for_its_store_and_one_that_starts_does_not():
    rejoining, away = RestartBackoff(), StoreUnavailable("connection refused")
    assert rejoining.delay(away, False, 1) is None
    rejoining.delay(Fenced(), True, 1)
    assert rejoining.delay(away, False, 1) == STORE_UNAVAILABLE_PAUSE


def test_of_two_nodes_whose_link_is_lost_for_good_the_weaker_one_ends_and_says_why(
    broker, client, name, monkeypatch, caplog
):
    nodes = {each.node.session: each for each in broker.nodes.values()}
    weaker, stronger = nodes[max(nodes)].node, nodes[min(nodes)].node

    async def sever():
        links = weaker.membership._links
        links.secret = b"another"
        for link in list(links._links.values()):
            link.close()

    monkeypatch.setattr(weaker.membership.unreachable_peers, "_step_down_after", 3)
    for each in nodes.values():  # a node that is linked is none the worse for it
        monkeypatch.setattr(each.node.membership.unreachable_peers, "_warn_after", 0.5)
    nodes[weaker.session].do(sever)
    # a queue that is new has to be known to all nodes: its first receipt comes when one of the two has gone
    client(stronger.config.node).send(f"/queue/{name}.new", "waits", persistent="true")
    wait_until(weaker.failed.done, "one has failed", 60)
    error = weaker.failed.exception()
    assert isinstance(error, NodeIsolated)
    assert f"node {stronger.config.node} at 127.0.0.1:" in str(error)
    assert not stronger.failed.done()
    assert f"node {stronger.config.node} at 127.0.0.1:" in caplog.text
    wait_until(lambda: f"node {weaker.config.node} at 127.0.0.1:" in caplog.text, "the other one said so too", 30)
    broker.crash(weaker.config.node)
    client(stronger.config.node).send(f"/queue/{name}", "goes on", persistent="true")
