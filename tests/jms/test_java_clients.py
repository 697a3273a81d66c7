"""The real Java client sees at Sluice what it sees at ActiveMQ: each scenario is played against both, and compared."""

from __future__ import annotations

import pytest

from tests.interop.activemq_server import needs_activemq
from tests.jms.java_programs import needs_java_client
from tests.jms.scenarios import LONG, play_all, scenario_names

pytestmark = [needs_java_client, needs_activemq, pytest.mark.slow]

SCENARIOS = [each for each in scenario_names() if not each.startswith(LONG)]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    return play_all(SCENARIOS, tmp_path_factory.mktemp("jms"))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_java_client_sees_what_it_sees_at_activemq(answers, scenario):
    expected, seen = answers["activemq"][scenario], answers["sluice"][scenario]
    assert "failed" not in expected
    assert seen == expected
