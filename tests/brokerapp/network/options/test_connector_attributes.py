"""Test attributes and uri of a network connector."""

from dataclasses import replace

import pytest

from brokerapp.errors import ConfigurationRefused
from brokerapp.model.destination import Destination
from brokerapp.network.options.address import OPENWIRE, BrokerAddress, address_of
from brokerapp.network.options.definition import NetworkConnector
from brokerapp.network.options.options import WITHOUT_EFFECT, ReconnectBackoff, options_of


def connector(uri="static:(tcp://a:1)", **options):
    return NetworkConnector("bridge", uri, options=tuple(options.items()))


def terms(*args, **options):
    return options_of(connector(*args, **options))[0]


@pytest.mark.parametrize(
    ("uri", "addresses"),
    [
        ("static:(tcp://a:1,tcp://b:2)", [("a", 1), ("b", 2)]),
        ("static://(tcp://a:1)", [("a", 1)]),
        ("static:tcp://a:1", [("a", 1)]),
        ("tcp://a", [("a", 61616)]),
        ("stomp://a", [("a", 61613)]),
        ("static:(stomp://[::1]:5)?maxReconnectDelay=7", [("::1", 5)]),
    ],
)
def test_a_uri_names_brokers(uri, addresses):
    assert terms(uri).addresses == tuple(BrokerAddress(host, port) for host, port in addresses)


def test_how_long_a_broker_may_take_to_answer_is_said_with_its_address():
    first, second = terms("static:(tcp://a:1?connectionTimeout=2500&soTimeout=1,tcp://b:2)").addresses
    assert (first.connect_timeout, second.connect_timeout) == (2.5, None)


@pytest.mark.parametrize(
    ("scheme", "may_be_openwire"),
    [
        ("tcp", True),
        ("nio", True),
        ("ssl", True),
        ("auto+nio+ssl", True),
        ("stomp", False),
        ("stomp+ssl", False),
        ("ws", False),
    ],
)
def test_openwire_may_be_spoken_where_activemq_speaks_it(scheme, may_be_openwire):
    assert terms(f"static:({scheme}://a:1)").addresses[0].may_speak_openwire is may_be_openwire


def test_what_is_offered_over_openwire_is_said_with_the_address():
    said = "wireFormat.tightEncodingEnabled=true&wireFormat.maxInactivityDuration=0&wireFormat.version=9&wireFormat.x=1"
    first, second = terms(f"static:(tcp://a:1?{said},tcp://b:2)").addresses
    assert first.openwire == replace(OPENWIRE, tight_encoding=True, max_inactivity_ms=0, version=9)
    assert second.openwire == OPENWIRE


@pytest.mark.parametrize("wrong", ["version=0", "version=13", "cacheEnabled=yes", "maxInactivityDuration=-1"])
def test_what_openwire_has_no_such_value_of_is_refused_with_the_options_there_are(wrong):
    with pytest.raises(ConfigurationRefused, match=r"wireFormat\.maxInactivityDuration"):
        terms(f"static:(tcp://a:1?wireFormat.{wrong})")


@pytest.mark.parametrize("wrong", ["soon", "0", "-1", "600001"])
def test_how_long_is_a_number_of_milliseconds(wrong):
    with pytest.raises(ConfigurationRefused, match="connectionTimeout=MILLISECONDS, at most 600000"):
        terms(f"static:(tcp://a:1?connectionTimeout={wrong})")


@pytest.mark.parametrize("text", ["tcp://a:1", "ssl://[::1]:5", "ws://a:1", "wss://a:1/stomp"])
def test_an_address_is_written_as_it_is_read(text):
    assert str(address_of(text)) == text


def test_a_pair_of_master_and_slave_is_tried_in_turn():
    assert terms("masterslave:(ssl://a:1,ssl://b:2)").in_turn
    assert terms("masterslave:(ssl://a:1,ssl://b:2)").addresses[1].tls
    assert not terms().in_turn


@pytest.mark.scenario("NB-09")
def test_defaults_are_those_of_the_documents():
    found = terms()
    assert (found.message_ttl, found.consumer_ttl, found.conduit_subscriptions, found.duplex) == (1, 1, True, False)
    assert (found.decrease_network_consumer_priority, found.prefetch_size) == (True, 1000)
    assert found.reconnecting == ReconnectBackoff(1000, 30_000, True, 2.0)


def test_network_ttl_is_that_of_messages_and_consumers_unless_they_have_their_own():
    assert (terms(networkTTL="3").message_ttl, terms(networkTTL="3").consumer_ttl) == (3, 3)
    found = terms(messageTTL="5", networkTTL="3")
    assert (found.message_ttl, found.consumer_ttl) == (5, 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"duplex": "perhaps"}, "duplex='perhaps': must be true or false"),
        ({"prefetchSize": "0"}, "prefetchSize='0'"),
        ({"messageTTL": "far"}, "messageTTL='far'"),
        ({"uri": "static:()"}, "contains no broker address"),
        ({"uri": "http://a:1"}, "'http://a:1' is not a broker address"),
        ({"uri": "static:(tcp://a:1)?backOffMultiplier=x"}, "backOffMultiplier='x'"),
        ({"uri": "static:(tcp://a:1)?backOffMultiplier=nan"}, "a number from 1"),
        (
            {"uri": "static:(tcp://a:1)?initialReconnectDelay=0"},
            "initialReconnectDelay='0': must be a whole number from 1",
        ),
        ({"uri": "static:(tcp://a:1)?initialReconnectDelay=-5"}, "initialReconnectDelay='-5'"),
        ({"uri": "static:(tcp://a:1)?maxReconnectDelay=0"}, "maxReconnectDelay='0'"),
        ({"uri": "static:(tcp://a:1)?minConnectTime=-1"}, "minConnectTime='-1'"),
        ({"uri": "tcp://a:99999"}, "port at most 65535"),
        ({"uri": "tcp://a:0"}, "port at most 65535"),
        ({"uri": "masterslave:(tcp://a:1)"}, "masterslave requires at least two"),
        ({"messageTTL": "-7"}, "messageTTL='-7': must be a whole number from -1"),
        ({"networkTTL": "-7"}, "messageTTL='-7'"),
        ({"prefetchSize": "9999999999"}, "prefetchSize='9999999999'"),
        ({"consumerPriorityBase": "128"}, "from -128 to 127"),
    ],
)
def test_what_cannot_be_understood_is_refused_by_name(options, words):
    with pytest.raises(ConfigurationRefused) as refused:
        terms(**options)
    assert words in str(refused.value)
    assert "bridge" in str(refused.value)


def test_attributes_that_nobody_knows_are_told():
    assert options_of(connector(duplex="true", colour="red"))[1] == ["colour"]


@pytest.mark.parametrize("uri", ["static:(tcp://a:1)", "multicast://default"])
def test_options_of_a_uri_that_nobody_knows_are_told(uri):
    assert options_of(connector(f"{uri}?initialReconectDelay=5&maxReconnectDelay=7"))[1] == ["initialReconectDelay"]


def test_delays_grow_to_their_limit():
    waits = ReconnectBackoff(100, 1000)
    assert [waits.delay_ms(failures) for failures in (1, 2, 3, 5, 10**6)] == [100, 200, 400, 1000, 1000]
    assert ReconnectBackoff(100, 1000, exponential=False).delay_ms(9) == 100


def test_the_other_broker_may_want_another_login():
    assert terms().login is None
    assert terms(userName="u", password="p").login == ("u", "p")
    assert terms(userName="u", password="p", remoteUserName="far").login == ("far", "")
    assert terms(remoteUserName="far", remotePassword="q").login == ("far", "q")


def test_an_included_topic_may_say_that_all_are_served_as_durable_subscribers():
    listed = [Destination.parse(each) for each in ("topic://a?forceDurable=true", "topic://b?forceDurable=false")]
    found, unknown = options_of(NetworkConnector("n", "tcp://a:1", dynamically_included=tuple(listed)))
    assert (found.forced_durable, unknown) == ((Destination.topic("a"),), [])
    strange = (Destination.parse("queue://q?colour=blue"),)
    assert options_of(NetworkConnector("n", "tcp://a:1", statically_included=strange))[1] == ["queue://q?colour"]
    wrong = (Destination.parse("topic://t?forceDurable=perhaps"),)
    with pytest.raises(ConfigurationRefused, match="forceDurable='perhaps': must be true or false"):
        options_of(NetworkConnector("n", "tcp://a:1", statically_included=wrong))


def test_what_changes_nothing_here_is_known_all_the_same():
    assert options_of(connector(**dict.fromkeys(WITHOUT_EFFECT, "x")))[1] == []


@pytest.mark.parametrize("uri", ["http://a:1", "https://a:1", "static:(http://a:1)"])
def test_http_is_refused_with_what_passes_where_it_does(uri):
    with pytest.raises(ConfigurationRefused, match="ws:// and wss:// pass where http does"):
        terms(uri)
