"""Test when destinations are deleted, by how they were created."""

import pytest

from brokerapp.engine.policy.life_cycles import (
    MAX_RECONNECT_WINDOW_MS,
    ConnectionEnd,
    DestinationOrigin,
    DestinationUsage,
    reconnect_grace_ms,
    reconnect_window_ms,
    should_delete_at_restart,
    should_delete_when_idle,
    survives_restart,
)
from brokerapp.errors import ProtocolError

ADMIN, AUTO, TEMPORARY = DestinationOrigin


@pytest.mark.parametrize(
    ("origin", "use", "idle", "limit", "ends"),
    [
        (AUTO, DestinationUsage(), 120_000, 120_000, True),
        (AUTO, DestinationUsage(), 119_999, 120_000, False),
        (AUTO, DestinationUsage(consumers=1), 500_000, 120_000, False),
        (AUTO, DestinationUsage(messages=1), 500_000, 120_000, False),
        (AUTO, DestinationUsage(producers=1), 500_000, 120_000, False),
        (AUTO, DestinationUsage(), 500_000, 0, False),
        (ADMIN, DestinationUsage(), 500_000, 120_000, False),
        (TEMPORARY, DestinationUsage(), 500_000, 120_000, False),
    ],
)
def test_only_what_clients_made_and_nobody_uses_ends_when_it_is_idle(origin, use, idle, limit, ends):
    assert should_delete_when_idle(origin, use, idle, limit) is ends


@pytest.mark.parametrize(
    ("origin", "messages", "is_subscription", "ends"),
    [
        (AUTO, 0, False, True),
        (AUTO, 1, False, False),
        (AUTO, 0, True, False),
        (ADMIN, 0, False, False),
        (TEMPORARY, 0, False, False),
    ],
)
def test_a_restart_ends_what_clients_made_and_is_empty_but_for_what_they_subscribed_to(
    origin, messages, is_subscription, ends
):
    assert should_delete_at_restart(origin, messages, is_subscription=is_subscription) is ends


@pytest.mark.parametrize(
    ("ending", "window", "grace"),
    [
        (ConnectionEnd.LEFT, 50_000, 0),
        (ConnectionEnd.LOST, 50_000, 50_000),
        (ConnectionEnd.HOME_LOST, 50_000, 50_000),
        (ConnectionEnd.LOST, 0, 0),
        (ConnectionEnd.HOME_LOST, 0, 0),
    ],
)
def test_temporary_destinations_outlive_a_broken_connection_only_where_it_may_come_back(ending, window, grace):
    assert reconnect_grace_ms(ending, window) == grace


@pytest.mark.parametrize(
    ("origin", "window", "kept"),
    [(ADMIN, 0, True), (AUTO, 0, True), (TEMPORARY, 0, False), (TEMPORARY, 1, True)],
)
def test_a_temporary_destination_is_kept_over_restarts_only_if_its_client_may_reconnect(origin, window, kept):
    assert survives_restart(origin, window) is kept


@pytest.mark.parametrize(
    ("asked", "window"),
    [
        (None, 0), ("", 0), ("false", 0), ("0", 0), ("true", 7_000), ("20000", 20_000),
        (str(MAX_RECONNECT_WINDOW_MS * 9), MAX_RECONNECT_WINDOW_MS),
    ],
)  # fmt: skip
def test_a_client_says_whether_and_for_how_long_it_may_reconnect(asked, window):
    assert reconnect_window_ms(asked, 7_000) == window


@pytest.mark.parametrize("asked", ["yes", "-1", "1.5", "9" * 40, "²"])
def test_what_says_neither_is_refused_by_name(asked):
    with pytest.raises(ProtocolError, match="reconnect:"):
        reconnect_window_ms(asked, 7_000)
