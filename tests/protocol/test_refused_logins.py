"""Test that the log tells of clients and bridges that were refused at their login, in either protocol."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from brokerapp.openwire.commands import BrokerId, BrokerInfo, ConnectionError
from brokerapp.openwire.wire_format_options import WireFormatOptions
from tests.protocol.clients import RawClient
from tests.protocol.network.test_openwire_bridges import USERS, xml
from tests.protocol.openwire_bridge import OpenWireBridge
from tests.protocol.openwire_client import OpenWireSocket
from tests.protocol.running_node import RunningNode, node_of


@pytest.fixture(scope="module")
def node(store) -> Iterator[RunningNode]:
    with node_of(xml(USERS), store) as running:
        yield running


@pytest.fixture
def refusals(caplog):
    """Returns the lines of the log about refused logins so far."""
    return lambda: [each.getMessage() for each in caplog.records if "login of client" in each.getMessage()]


def test_a_bridge_without_a_user_is_in_the_log(node, refusals):
    with OpenWireBridge(node.port, "nameless") as bridge:
        assert "no user name was given; this broker requires a login" in bridge.answer.exception.message
    [line] = refusals()
    assert line.startswith("connector openwire: login of client nc_nameless_outbound (user -, address 127.0.0.1:")
    assert line.endswith("was refused: no user name was given; this broker requires a login")


def test_a_bridge_whose_user_may_not_be_one_is_in_the_log_with_the_permission_that_it_needs(node, refusals):
    with OpenWireBridge(node.port, "legacy", login=("app", "p")) as bridge:
        needed = "a bridge needs the permission to create the topic Sluice.Network.legacy"
        assert bridge.answer.exception.message.endswith(f"User app may not be a bridge of legacy: {needed}")
    [line] = refusals()
    assert "login of client nc_legacy_outbound (user app, " in line
    assert needed in line


def test_a_bridge_of_a_broker_of_the_same_name_is_in_the_log(node, refusals):
    with OpenWireSocket(node.port) as client:
        client.agree(WireFormatOptions())
        client.write(BrokerInfo(broker_id=BrokerId("ID:1"), broker_name=node.name, network_connection=True))
        assert client.next(ConnectionError) is not None
    [line] = refusals()
    assert "each broker of a network needs a brokerName of its own" in line


def test_a_wrong_password_is_in_the_log_once_a_minute_though_generated_client_ids_differ(node, refusals):
    for number in range(3):
        with OpenWireSocket(node.port) as client:
            client.agree(WireFormatOptions())
            client.connect(client_id=f"ID:host-{number}", user_name="app", password="guess")
    [line] = refusals()
    assert "login of client ID:host-0 (user app, " in line
    assert line.endswith("user name 'app' or its password is wrong")
    assert "guess" not in line


def test_a_refused_stomp_client_is_in_the_log_and_cannot_break_the_line(node, refusals):
    client = RawClient(node.port, version=None)
    login = {"login": "app", "passcode": "no", "client-id": "a\\nb"}
    client.tell("CONNECT", {"accept-version": "1.2", "host": "here", **login})
    assert client.is_closed()
    [line] = refusals()
    assert "\n" not in line
    assert "(user app, " in line


def test_where_roles_decide_who_may_be_a_bridge_the_role_is_named(node, monkeypatch):
    bridges = node.node.broker.bridges
    monkeypatch.setattr(bridges, "_settings", replace(bridges._settings, bridge_groups=frozenset({"admin"})))
    with OpenWireBridge(node.port, "legacy", login=("bridge", "p")) as bridge:
        assert bridge.answer.exception.message.endswith("legacy: a bridge needs a user with the role admin")
