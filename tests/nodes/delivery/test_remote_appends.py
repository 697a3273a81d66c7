"""Test what becomes of messages that other nodes stored in logs which this node does not know."""

from unittest.mock import MagicMock

import pytest

from tests.nodes.parts import placement_of


@pytest.mark.parametrize(
    ("log", "discarded_by"), [("subscription://client:gone", "durables"), ("temp-queue://1-node-9:1", "commits")]
)
def test_messages_for_a_log_that_the_store_does_not_have_any_more_are_discarded(log, discarded_by):
    commits, durables = MagicMock(), MagicMock()
    commits.read_with = lambda _question, callback, _log: callback([{}])
    placement = placement_of("1", commits=commits, durables=durables)
    placement.remote_appends.on_appended("2", log, 1, 7, None, None)
    discards = {"durables": durables.discard, "commits": commits.discard_log}
    discards.pop(discarded_by).assert_called_once_with(log)
    [other] = discards.values()
    other.assert_not_called()
