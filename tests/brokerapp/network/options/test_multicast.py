"""Test how brokers announce themselves by multicast, and which group a uri names."""

import pytest

from brokerapp.errors import ConfigurationRefused
from brokerapp.network.options.multicast import Announcement, DiscoveryGroup, parse_group


@pytest.mark.parametrize("broker", ["b", "50%", "a:b c", "%25"])
@pytest.mark.parametrize("alive", [True, False])
def test_an_announcement_is_read_as_it_was_meant(broker, alive):
    uri = "stomp://10.0.0.1:61613"
    assert DiscoveryGroup().parse(DiscoveryGroup().announcement(broker, uri, alive=alive)) == Announcement(
        broker, uri, alive
    )


@pytest.mark.parametrize(
    "datagram",
    [
        b"",
        b"\xff\xfe",
        b"default.ActiveMQ-4.alive.%localhost%tcp://h:61616",
        b"default.Sluice-1.alive.",
        b"default.Sluice-1.alive.%b",
        b"default.Sluice-1.maybe.%b%tcp://h:1",
        DiscoveryGroup(name="other").announcement("b", "tcp://h:1", alive=True),
    ],
)
def test_what_is_none_of_the_group_is_not_heard(datagram):
    assert DiscoveryGroup().parse(datagram) is None


@pytest.mark.parametrize(
    ("uri", "group", "rest"),
    [
        ("multicast://default", DiscoveryGroup(), {}),
        ("multicast://239.1.2.3:7000?group=test", DiscoveryGroup("239.1.2.3", 7000, "test"), {}),
        (
            "multicast://default?keepAliveInterval=50&networkInterface=lo&maxReconnectDelay=5",
            DiscoveryGroup(interface="lo", keep_alive_ms=50),
            {"maxReconnectDelay": "5"},
        ),
    ],
)
def test_a_uri_names_a_group(uri, group, rest):
    assert parse_group(uri) == (group, rest)


@pytest.mark.parametrize("uri", ["multicast:default", "multicast://", "multicast://default?keepAliveInterval=soon"])
def test_a_uri_that_names_none_is_refused(uri):
    with pytest.raises(ConfigurationRefused, match="multicast"):
        parse_group(uri)
