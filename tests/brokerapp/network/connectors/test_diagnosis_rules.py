"""Test the reasons given for messages that are not forwarded."""

from dataclasses import replace

import pytest

from brokerapp.engine.routing.bridge_eligibility import BridgeDecision
from brokerapp.model.destination import Destination
from brokerapp.model.network_stats import BridgeConnectionState
from brokerapp.network.bridge.demand import DemandSubscription
from brokerapp.network.connectors.diagnosis_rules import DiagnosisFacts, block_reason
from brokerapp.network.options.address import BrokerAddress
from brokerapp.network.options.options import ConnectorOptions

QUEUE = Destination.queue("q")
CROSSING = DiagnosisFacts(
    ConnectorOptions("bridge", (BrokerAddress("b", 1),)),
    QUEUE,
    BridgeConnectionState.CONNECTED,
    "",
    (DemandSubscription("1", QUEUE, None, 0, ("B",)),),
)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"decision": BridgeDecision.CROSSES}, ""),
        ({"state": BridgeConnectionState.STOPPED}, "stopped"),
        ({"state": BridgeConnectionState.WAITING, "last_error": "Connection refused"}, "Connection refused"),
        ({"demand": ()}, "no consumers within"),
        ({"demand": (), "terms": replace(CROSSING.terms, excluded=(QUEUE,))}, "excluded"),
        ({"demand": (), "terms": replace(CROSSING.terms, static_bridge=True)}, "static"),
        ({"is_suppressed": True}, "another bridge"),
        ({"is_paused": True}, "paused"),
        ({"decision": BridgeDecision.TOO_FAR}, "messageTTL"),
        ({"decision": BridgeDecision.CAME_FROM_THERE}, "received from"),
        ({"is_unacked": True}, "holds it"),
        ({"preferred_count": 2}, "2 local consumers"),
        ({"has_no_credit": True}, "prefetchSize"),
    ],
)
def test_the_first_thing_that_stands_in_the_way_is_named(changes, words):
    said = block_reason(replace(CROSSING, **changes))
    assert said == "" if words == "" else words in said
