"""Test what an ActiveMQ tells of its duplex connector."""

import pytest

from brokerapp.errors import ConfigurationRefused, InvalidDestination
from brokerapp.model.destination import Destination
from brokerapp.network.options.duplex_options import duplex_options

#: As an ActiveMQ 5.17.2 tells them.
TOLD = {
    "name": "nc", "duplex": "true", "consumerTTL": "2", "messageTTL": "3", "prefetchSize": "10",
    "alwaysSyncSend": "true", "decreaseNetworkConsumerPriority": "false", "conduitSubscriptions": "false",
    "userName": "u", "password": "p", "remoteUserName": "there", "started": "true", "gcSweepTime": "60000",
    "uri": "static:(tcp://127.0.0.1:1)",
    "destinationFilter": "ActiveMQ.Advisory.Consumer.Queue.>,ActiveMQ.Advisory.Consumer.Topic.t",
    "excludedDestinations": "[queue://ex.>, topic://ex2]", "staticallyIncludedDestinations": "[queue://always]",
    "dynamicallyIncludedDestinations": "[queue://>, topic://t?forceDurable=true]",
}  # fmt: skip


def test_the_bridge_back_has_the_filters_and_options_of_the_connector():
    options = duplex_options("nc", TOLD)
    assert (options.name, options.duplex, options.addresses) == ("nc", False, ())
    assert (options.consumer_ttl, options.message_ttl, options.prefetch_size) == (2, 3, 10)
    assert (options.always_sync_send, options.conduit_subscriptions) == (True, False)
    assert options.login == ("u", "p"), "the other one is for this broker"
    assert options.excluded == (Destination.queue("ex.>"), Destination.topic("ex2"))
    assert options.statically_included == (Destination.queue("always"),)
    assert [str(each) for each in options.forced_durable] == ["topic://t"]
    assert options.destination_filter == "Queue.>,ActiveMQ.Advisory.Consumer.Topic.t"


def test_a_connector_that_tells_nothing_has_the_defaults():
    options = duplex_options("nc", {})
    assert (options.dynamically_included, options.destination_filter, options.login) == ((), None, None)


@pytest.mark.parametrize(
    "attributes", [{"prefetchSize": "many"}, {"prefetchSize": "0"}, {"excludedDestinations": "[queue://]"}]
)
def test_what_means_nothing_is_refused(attributes):
    with pytest.raises((ConfigurationRefused, InvalidDestination)):
        duplex_options("nc", attributes)
