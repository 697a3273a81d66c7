"""The real Java client sees at Sluice what it sees at ActiveMQ: each scenario is played against both, and compared."""

from __future__ import annotations

import pytest

from tests.interop.activemq_server import needs_activemq
from tests.jms.java_programs import needs_java_client
from tests.jms.scenarios import play_all, scenario_names

pytestmark = [needs_java_client, needs_activemq, pytest.mark.slow]

#: What Sluice does not answer as ActiveMQ yet.
DIFFERENT = {
    "Connections.client_ids",
    "Consumers.selectors_compare_by_type",
    "OtherProtocols.to_stomp",
    "Restarts.branches_in_two_phases",
    "Restarts.prepared_branches_survive",
    "Temporary.they_can_be_deleted",
}
SCENARIOS = [each for each in scenario_names() if each not in DIFFERENT]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    return play_all(SCENARIOS, tmp_path_factory.mktemp("jms"))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_java_client_sees_what_it_sees_at_activemq(answers, scenario):
    expected, seen = answers["activemq"][scenario], answers["sluice"][scenario]
    assert "failed" not in expected
    assert seen == expected
