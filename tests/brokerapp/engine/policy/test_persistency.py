import pytest

from brokerapp.engine.policy.persistency import forced_persistency
from brokerapp.model.definitions import PolicyEntry
from brokerapp.model.destination import Destination


def policy(forced):
    return PolicyEntry(Destination.queue("a"), force_persistency=forced)


@pytest.mark.parametrize(
    ("policies", "otherwise", "forced"),
    [
        ([], None, None),
        ([None], True, True),
        ([policy(None)], False, False),
        ([policy(True)], None, True),
        ([policy(True)], False, True),
        ([policy(False)], True, False),
        ([policy(False), None], None, False),
        ([policy(False), policy(True)], None, True),
    ],
)
def test_the_policies_of_where_it_is_sent_go_before_the_broker_and_differ_in_favour_of_keeping(
    policies, otherwise, forced
):
    assert forced_persistency(policies, otherwise) is forced
