"""Test memory limits and durability of a store."""

import pytest

from brokerapp.errors import ConfigurationRefused
from brokerapp.store.memory_limits import FULL, server_limit, store_limit
from brokerapp.store.server.durability import durability_loss

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
    ("server", "limit"),
    [
        (memory(used=GB), 0),
        (memory(limit=GB, used=GB // 3), 0),
        (memory(limit=GB, used=GB // 2), int(GB * FULL)),
        (memory(limit=GB, used=2 * GB), int(GB * FULL)),
    ],
)
def test_what_a_server_uses_is_watched_when_it_is_half_full(server, limit):
    assert server_limit(server) == limit


async def test_a_real_server_tells_all_that_is_asked(store):
    told = await store.server.memory()
    assert told["used"] > 0
    assert told["machine"] > told["used"]
    assert (told["limit"], told["evicts"], told["fsync"]) == (0, False, "always")


@pytest.mark.parametrize(
    ("fsync", "said"), [("off", "memory only"), ("everysec", "once per second"), ("unknown", "report")]
)
def test_a_server_that_may_lose_what_was_confirmed_is_named(fsync, said):
    assert said in durability_loss({**memory(), "fsync": fsync})
    assert durability_loss(memory()) == ""
