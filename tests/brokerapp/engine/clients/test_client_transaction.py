"""Test how acknowledged messages of an open transaction are found by the client's names for them."""

from brokerapp.engine.clients.client import Transaction
from brokerapp.engine.dispatch.subscription import Subscription


class Named:
    """A subscription, as far as it names what it held; counts how often it is asked."""

    def __init__(self):
        self.asked = 0

    def ack_id_of(self, key):
        self.asked += 1
        return Subscription.ack_id_of(key)


def test_what_was_acknowledged_is_found_without_looking_through_all_of_it_each_time():
    owner, transaction = Named(), Transaction()
    for number in range(500):
        transaction.settled += [(owner, f"ID:{number}", None)]
        assert transaction.settled_as(f"ID:{number // 2}") == [(owner, f"ID:{number // 2}")]
    assert owner.asked == 500


def test_what_has_the_name_of_another_message_is_found_with_it():
    owner, transaction = Named(), Transaction()
    transaction.settled = [(owner, "ID:1", None), (owner, "ID:1\n", None), (owner, "ID:2", None)]
    assert transaction.settled_as("ID:1") == [(owner, "ID:1"), (owner, "ID:1\n")]


def test_what_was_taken_out_of_it_is_no_longer_found():
    owner, transaction = Named(), Transaction()
    transaction.settled = [(owner, "ID:1", None), (owner, "ID:2", None)]
    assert transaction.settled_as("ID:1")
    transaction.settled = [each for each in transaction.settled if each[1] != "ID:1"]
    assert (list(transaction.settled_as("ID:1")), transaction.settled_as("ID:2")) == ([], [(owner, "ID:2")])
