"""Test how network connectors start, stop and change, without another broker."""

import asyncio
import socket
import ssl
import threading
from types import SimpleNamespace

import pytest

from brokerapp.engine.clients.broker_ids import BrokerIds
from brokerapp.model.network_stats import BridgeConnectionState
from brokerapp.network.connectors.connectors import ConnectorManager
from brokerapp.network.links.bridge_link import dial
from brokerapp.network.links.broker_link import BridgeConnectionLost
from brokerapp.network.options.address import BrokerAddress
from brokerapp.network.options.definition import NetworkConnector
from brokerapp.network.options.outbound_rules import OutboundRule
from tests.ports import free_port

believed = ssl.create_default_context
ENDPOINT = SimpleNamespace(services=SimpleNamespace(name="here", broker_ids=BrokerIds()))


def manager(connectors, **options):
    """The connectors of a broker without durable subscriptions."""
    return ConnectorManager(ENDPOINT, connectors, believed, durables=(), advisories=None, **options)


@pytest.fixture
def nobody():
    """An address at which nobody listens."""
    return f"tcp://127.0.0.1:{free_port()}"


def test_connectors_that_are_made_and_removed_while_others_start_hinder_none(nobody):
    async def start():
        names = ("first", "gone", "last")
        connections = manager([NetworkConnector(each, nobody) for each in names])
        connections.start()
        await asyncio.sleep(0)
        gone = connections.find("gone")
        await connections.remove("gone")
        await connections.put(NetworkConnector("new", nobody))
        await asyncio.wait_for(connections._start_task, 10)
        running = {each.definition.name: each.connections[0].is_running for each in (*connections, gone)}
        await connections.stop()
        return running

    assert asyncio.run(start()) == {"first": True, "last": True, "new": True, "gone": False}


@pytest.mark.parametrize("at_once", [False, True])
def test_a_slow_network_holds_up_the_next_one_unless_all_start_at_once(nobody, monkeypatch, at_once):
    async def start():
        connections = manager([NetworkConnector(each, nobody) for each in ("slow", "next")], at_once=at_once)
        slow, following = connections.connections
        answered = asyncio.Event()
        monkeypatch.setattr(slow, "_serve", lambda _address: answered.wait())
        connections.start()
        for _ in range(5):
            await asyncio.sleep(0)
        before = following.is_running
        answered.set()
        await asyncio.wait_for(connections._start_task, 10)
        after = following.is_running
        await connections.stop()
        return before, after

    assert asyncio.run(start()) == (at_once, True)


def test_a_fault_while_connectors_start_is_told_and_does_not_keep_the_others_from_stopping(nobody, monkeypatch, caplog):
    async def stop():
        connections = manager([NetworkConnector("first", nobody)])
        monkeypatch.setattr(connections, "_start_one", None)
        connections.start()
        await asyncio.sleep(0)
        await connections.start_connector("first")
        await connections.stop()
        return connections.connections[0].state

    assert asyncio.run(stop()) is BridgeConnectionState.STOPPED
    assert "could not all be started" in caplog.text


def test_a_connector_that_gave_up_tries_again_when_it_is_started(nobody):
    async def start_again():
        once = f"static:({nobody})?maxReconnectAttempts=1"
        connections = manager([NetworkConnector("once", once)])
        [way] = connections.connections
        states = []
        for _ in range(2):
            await connections.start_connector("once")
            states.append(way.is_running)
            await asyncio.wait_for(way._task, 10)
            states.append(way.state)
        return states

    assert asyncio.run(start_again()) == [True, BridgeConnectionState.GAVE_UP] * 2


def test_brokers_that_were_found_are_looked_for_anew_after_a_stop(nobody):
    async def stop():
        uri = "multicast://default?networkInterface=lo&group=found"
        connections = manager([NetworkConnector("near", uri)])
        await connections.start_connector("near")
        connections._on_broker_found(connections.find("near"), nobody, "there")
        found = len(connections.connections)
        await connections.stop_connector("near")
        return found, connections.connections

    assert asyncio.run(stop()) == (1, [])


def test_who_accepts_and_never_answers_is_given_up_as_its_address_says_and_tried_less_and_less_often():
    async def attempts():
        server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
        address = f"static:(tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}?connectionTimeout=50)"
        quick = "initialReconnectDelay=1&minConnectTime=20&maxReconnectAttempts=3"
        connections = manager([NetworkConnector("deaf", f"{address}?{quick}")])
        await connections.start_connector("deaf")
        [way] = connections.connections
        await asyncio.wait_for(way._task, 10)
        server.close()
        return way.attempts, way.state, way.last_error

    assert asyncio.run(attempts()) == (3, BridgeConnectionState.GAVE_UP, "no reply to CONNECT")


def test_dialling_ends_at_last(monkeypatch):
    monkeypatch.setattr("brokerapp.network.links.bridge_link.CONNECT_SECONDS", 0.05)

    async def dial_nobody():
        async def never(*_args, **_named):
            await asyncio.Event().wait()

        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", never)
        await dial("deaf", BrokerAddress("far.example", 61613), believed)

    with pytest.raises(BridgeConnectionLost, match=r"no connection within 0\.05 s"):
        asyncio.run(dial_nobody())


def test_a_broker_that_announces_two_addresses_is_led_to_by_one_at_a_time(nobody):
    async def find():
        connections = manager([NetworkConnector("near", "multicast://default?networkInterface=lo")])
        connector, other, led_to = connections.find("near"), f"tcp://127.0.0.1:{free_port()}", []
        for change in (
            lambda: connections._on_broker_found(connector, nobody, "there"),
            lambda: connections._on_broker_found(connector, other, "there"),
            lambda: connections._on_broker_lost(connector, nobody),
            lambda: connections._on_broker_lost(connector, other),
        ):
            change()
            led_to.append([str(way.addresses[0]) for way in connections.connections])
        await asyncio.gather(*connections._stopping)
        assert led_to == [[nobody], [nobody], [other], []]

    asyncio.run(find())


@pytest.mark.parametrize("secret", [
    (("userName", "u"), ("password", "s")),
    (("remoteUserName", "u"), ("remotePassword", "s")),
])  # fmt: skip
@pytest.mark.parametrize(("uri", "ways"), [("tcp://127.0.0.1:1", 0), ("ssl://127.0.0.1:1", 1)])
def test_a_password_is_told_nobody_who_only_announces_itself_without_tls(uri, ways, secret):
    async def find():
        near = NetworkConnector("near", "multicast://default?networkInterface=lo", options=secret)
        connections = manager([near])
        connections._on_broker_found(connections.find("near"), uri, "whoever")
        found = len(connections.connections)
        await connections.stop()
        return found

    assert asyncio.run(find()) == ways


def test_key_stores_are_read_in_a_thread_of_their_own():
    read_in = []

    def believed_slowly():
        read_in.append(threading.current_thread())
        return ssl.create_default_context()

    with pytest.raises(BridgeConnectionLost):
        asyncio.run(dial("near", BrokerAddress("127.0.0.1", free_port(), tls=True), believed_slowly))
    assert read_in[0] is not threading.current_thread()


class ChangingResolver:
    """Resolves the name moved.example to each of these addresses in turn, and then to the last one."""

    def __init__(self, monkeypatch, *addresses):
        self.asked = 0
        self._addresses, self._real = addresses, socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._resolve)

    def _resolve(self, host, port, *args, **named):
        if host == "moved.example":
            host = self._addresses[min(self.asked, len(self._addresses) - 1)]
            self.asked += 1
        return self._real(host, port, *args, **named)


def test_a_connector_with_a_rule_connects_to_the_address_that_was_checked_though_the_name_changes(monkeypatch):
    resolver = ChangingResolver(monkeypatch, "127.0.0.1", "127.0.0.2")

    async def connect():
        accepted = asyncio.Event()
        server = await asyncio.start_server(lambda _reader, _writer: accepted.set(), "127.0.0.1", 0)
        address = BrokerAddress("moved.example", server.sockets[0].getsockname()[1])
        link = await dial("moved", address, believed, OutboundRule.read("127.0.0.1/32"))
        await asyncio.wait_for(accepted.wait(), 10)
        link.close()
        server.close()

    asyncio.run(connect())
    assert resolver.asked == 1


def test_a_connector_whose_name_leads_elsewhere_by_now_does_not_connect_there(monkeypatch):
    ChangingResolver(monkeypatch, "127.0.0.1", "127.0.0.2")

    async def connect_twice():
        accepted = []
        server = await asyncio.start_server(lambda _reader, writer: accepted.append(writer), "0.0.0.0", 0)
        uri = f"tcp://moved.example:{server.sockets[0].getsockname()[1]}?connectionTimeout=100"
        quick = "initialReconnectDelay=1&minConnectTime=60000&maxReconnectAttempts=2"
        definition = NetworkConnector("moved", f"static:({uri})?{quick}", outbound="127.0.0.1")
        connections = manager([definition])
        await connections.start_connector("moved")
        [way] = connections.connections
        await asyncio.wait_for(way._task, 10)
        for writer in accepted:
            writer.close()
        server.close()
        return len(accepted), way.last_error

    count, error = asyncio.run(connect_twice())
    assert count == 1
    assert error.startswith("127.0.0.2 is not a public address")


def test_a_connector_of_a_configuration_file_connects_to_any_address(monkeypatch):
    ChangingResolver(monkeypatch, "127.0.0.2")

    async def connect():
        accepted = asyncio.Event()
        server = await asyncio.start_server(lambda _reader, _writer: accepted.set(), "127.0.0.2", 0)
        link = await dial("moved", BrokerAddress("moved.example", server.sockets[0].getsockname()[1]), believed)
        await asyncio.wait_for(accepted.wait(), 10)
        link.close()
        server.close()

    asyncio.run(connect())
