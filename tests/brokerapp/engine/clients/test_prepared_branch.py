"""What a prepared branch holds, in the store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerapp.engine.clients.prepared_branch import PreparedAck, PreparedBranch, PreparedSends, PreparedSummary
from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, RoutedCopy


def message(body: bytes, deliveries: int = 0) -> Message:
    return Message("ID:a:1", b"message-id:ID\\ca\\c1\nk:v\n", body, priority=4, born_us=17, deliveries=deliveries)


names = st.text("abc.\u00e4 ", min_size=1).filter(str.strip).map(lambda text: f"n{text.strip()}n")
destinations = st.builds(Destination.queue, names) | st.builds(Destination.topic, names)
copies = st.builds(RoutedCopy, destinations, st.none() | destinations, st.none() | destinations)
messages = st.builds(message, st.binary(), st.integers(0, 9))
sends = st.builds(
    lambda to, queues, topics, sent: PreparedSends(to, queues, topics, sent, list(range(len(sent)))),
    destinations, st.lists(copies), st.lists(copies), st.lists(messages),
)  # fmt: skip
branches = st.builds(
    PreparedBranch,
    st.lists(sends),
    st.lists(st.tuples(names, st.binary(min_size=1))),
    st.lists(st.builds(PreparedAck, names, names, names, messages)),
)


@given(branches)
def test_a_branch_can_be_read_from_its_value_in_the_store(branch):
    assert PreparedBranch.decode(branch.encode()) == branch


@given(branches, st.data())
def test_a_branch_that_storage_cut_is_an_error_of_its_own(branch, data):
    stored = branch.encode()
    with pytest.raises(BrokerError, match="damaged"):
        PreparedBranch.decode(stored[: data.draw(st.integers(0, len(stored) - 1))])


def test_a_message_that_storage_changed_is_marked():
    branch = PreparedBranch(acks=[PreparedAck("queue://q", "", "", message(b"body"))])
    [ack] = PreparedBranch.decode(branch.encode().replace(b"body", b"bodY")).acks
    assert ack.message.is_damaged


def test_a_summary_can_be_read_from_its_value_in_the_store():
    summary = PreparedSummary("client", "user", 17, 2, 3, 400)
    assert PreparedSummary.decode(summary.encode()) == summary
