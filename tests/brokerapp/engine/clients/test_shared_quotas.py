"""Test the quotas that all clients share."""

import pytest

from brokerapp.engine.clients import quotas
from brokerapp.engine.clients.quotas import WRITE_BYTES, WRITE_COUNTS, Quotas
from brokerapp.errors import LimitExceeded

MB = 1024 * 1024


def test_each_client_has_less_the_more_there_are_and_never_nothing():
    held = Quotas(100 * MB)
    shares = []
    for clients in (0, 1, 10, 100, 1000, 100_000):
        held.divide_among(clients)
        shares.append((held.share.write_count, held.share.bytes))
        if WRITE_BYTES[1] < held.share.bytes:
            assert clients * held.share.bytes <= 100 * MB
    assert shares[0] == shares[1] == shares[2] == (WRITE_COUNTS[0], WRITE_BYTES[0])
    assert shares[3] == (WRITE_COUNTS[0], MB)
    assert shares[-1] == (WRITE_COUNTS[1], WRITE_BYTES[1])
    assert shares == sorted(shares, reverse=True)


def test_all_clients_see_their_share_change():
    held = Quotas()
    share = held.share
    held.divide_among(100_000)
    assert share is held.share
    assert share.write_count == WRITE_COUNTS[1]


def test_subscriptions_are_bounded_for_one_and_for_all(monkeypatch):
    monkeypatch.setattr(quotas, "MAX_SUBSCRIPTIONS", 5)
    monkeypatch.setattr(quotas, "MAX_PATTERNS", 2)
    monkeypatch.setattr(quotas, "MAX_ALL_SUBSCRIPTIONS", 9)
    held = Quotas()
    held.check_subscription(5, 2)
    for own, patterns in ((6, 0), (1, 3)):
        with pytest.raises(LimitExceeded, match="a connection"):
            held.check_subscription(own, patterns)
    held.subscriptions = 9
    with pytest.raises(LimitExceeded, match="there are 9 subscriptions"):
        held.check_subscription(1, 0)


def test_transactions_are_bounded_in_number_and_bytes(monkeypatch):
    monkeypatch.setattr(quotas, "MAX_ALL_TRANSACTIONS", 2)
    held = Quotas(100)
    held.begin_transaction()
    held.begin_transaction()
    with pytest.raises(LimitExceeded, match="2 transactions are open"):
        held.begin_transaction()
    held.reserve(60)
    with pytest.raises(LimitExceeded, match="60 of 100 bytes"):
        held.reserve(41)
    held.reserve(40)
    held.end_transaction(100)
    held.begin_transaction()
    held.reserve(100)
