"""Room: how many bytes of messages a store may hold."""

import pytest

from brokerapp.errors import ConfigurationRefused
from brokerapp.store.room import is_full, store_limit

GB = 1 << 30


def memory(machine=10 * GB, limit=0, used=0, evicts=False):
    return {"machine": machine, "limit": limit, "used": used, "evicts": evicts, "fsync": "always"}


@pytest.mark.parametrize(
    ("wanted", "server", "limit"),
    [
        (0, memory(), 5 * GB),
        (GB, memory(), GB),
        (100 * GB, memory(), 8 * GB),
        (0, memory(limit=2 * GB), int(1.6 * GB)),
        (GB, memory(limit=2 * GB), GB),
        (3 * GB, memory(limit=2 * GB), int(1.6 * GB)),
        (0, memory(machine=0, limit=2 * GB), int(1.6 * GB)),
        (0, memory(machine=0), 0),
    ],
)
def test_the_limit_is_the_one_wanted_and_never_more_than_the_server_can_hold(wanted, server, limit):
    assert store_limit(wanted, server) == limit


def test_a_limit_that_cannot_be_is_said(caplog):
    store_limit(100 * GB, memory())
    assert "storeUsage" in caplog.text


def test_a_server_that_would_forget_messages_is_refused():
    with pytest.raises(ConfigurationRefused, match="noeviction"):
        store_limit(0, memory(limit=GB, evicts=True))
    assert store_limit(0, memory(evicts=True)) == 5 * GB  # without a limit it never does


@pytest.mark.parametrize(
    ("server", "full"),
    [
        (memory(limit=100, used=50), False),
        (memory(limit=100, used=97), True),
        (memory(limit=100, used=200), True),
        (memory(used=GB), False),
    ],
)
def test_a_server_is_full_when_its_own_limit_is_reached(server, full):
    assert is_full(server) is full


async def test_a_real_server_tells_all_that_is_asked(store):
    told = await store.memory()
    assert told["used"] > 0
    assert told["machine"] > told["used"]
    assert (told["limit"], told["evicts"], told["fsync"]) == (0, False, "always")
