"""Test how much may be written to a disk, by its free and reserved space."""

import asyncio
import ctypes
import mmap
import os

import pytest

from brokerapp.runtime.disk_watch import DiskWatch
from brokerapp.store import StoreLimits
from brokerapp.store.redis import RedisStore
from brokerapp.store.server.disk import StoreDisk
from brokerapp.store.server.disk_space import MIB, DiskLevel, DiskSpace
from brokerapp.store.server.embedded import EmbeddedStore

LARGE = 500_000 * MIB  # messages are accepted while 256 MiB are free, and 128 are reserved


@pytest.mark.parametrize(
    ("free", "reserved", "before", "level"),
    [
        (257, 0, DiskLevel.ENOUGH, DiskLevel.ENOUGH),
        (255, 0, DiskLevel.ENOUGH, DiskLevel.LOW),
        (310, 128, DiskLevel.LOW, DiskLevel.LOW),  # it is not to change all the time
        (320, 128, DiskLevel.LOW, DiskLevel.ENOUGH),
        (0, 128, DiskLevel.LOW, DiskLevel.LOW),
        (0, 31, DiskLevel.LOW, DiskLevel.EXHAUSTED),
        (31, 0, DiskLevel.LOW, DiskLevel.EXHAUSTED),
        (20, 40, DiskLevel.EXHAUSTED, DiskLevel.EXHAUSTED),
        (20, 45, DiskLevel.EXHAUSTED, DiskLevel.LOW),
        (0, 7, DiskLevel.EXHAUSTED, DiskLevel.SPENT),
        (0, 17, DiskLevel.SPENT, DiskLevel.EXHAUSTED),
        (400, 0, DiskLevel.SPENT, DiskLevel.ENOUGH),
    ],
)
def test_messages_stop_first_then_acknowledgements_then_reports(free, reserved, before, level):
    assert DiskSpace(LARGE, free * MIB, reserved * MIB).assess(before).level is level


def test_a_disk_that_nobody_watches_refuses_nothing():
    limits = StoreLimits(total=10)
    assert (limits.accepted_bytes, limits.has_space_for(10**12)) == (10, True)


def test_what_was_committed_since_the_last_look_counts_as_used():
    limits = StoreLimits(disk=DiskSpace(LARGE, 300 * MIB, 128 * MIB))
    limits.committed_bytes, limits.committed_at_disk_check, limits.committing_bytes = 120 * MIB, 100 * MIB, 20 * MIB
    assert limits.accepted_bytes == 0  # no limit
    limits.committed_bytes += 10 * MIB
    assert limits.accepted_bytes == 1  # not one byte more


def test_a_disk_with_too_little_above_the_limit_for_a_message_is_low_until_there_is_enough_for_it():
    limits = StoreLimits(disk=DiskSpace(LARGE, 260 * MIB))
    limits.committing_bytes = 10 * MIB
    assert (limits.accepted_bytes, limits.wanted_bytes) == (1, 10 * MIB)
    low = limits.disk.assess(DiskLevel.ENOUGH, wanted=limits.wanted_bytes)
    assert (low.level, low.wanted) == (DiskLevel.LOW, 10 * MIB)
    assert DiskSpace(LARGE, 325 * MIB).assess(DiskLevel.LOW, wanted=low.wanted).level is DiskLevel.LOW
    again = DiskSpace(LARGE, 330 * MIB).assess(DiskLevel.LOW, wanted=low.wanted)
    assert (again.level, again.wanted) == (DiskLevel.ENOUGH, 0)


def test_a_commit_that_would_leave_too_little_waits_and_counts_as_exhaustion():
    limits = StoreLimits(disk=DiskSpace(LARGE, 0, 40 * MIB, DiskLevel.LOW))
    assert limits.has_space_for(7 * MIB)
    assert not limits.has_space_for(9 * MIB)
    assert limits.disk.assess(DiskLevel.LOW, limits.needed_bytes).level is DiskLevel.EXHAUSTED


def test_a_disk_with_much_space_is_left_as_it_is(tmp_path):
    (tmp_path / "appendonlydir").mkdir()
    file = tmp_path / "appendonlydir" / "appendonly.aof.1.incr.aof"
    file.write_bytes(b"x")
    seen = StoreDisk(tmp_path).measure(DiskSpace(), needed=0)
    assert seen.total >= seen.free > 0
    assert file.read_bytes() == b"x"


async def test_a_node_that_starts_again_lets_the_server_rewrite_its_file_as_the_former_one_did_not(tmp_path):
    with EmbeddedStore(tmp_path / "store") as embedded:
        store = RedisStore(embedded.url, "watched")
        await store.server.set_rewrite_percentage(0)  # as the node's former run left it, when the disk had little space
        watch = DiskWatch(StoreDisk(embedded.folder), StoreLimits(), store.server, lambda: None)
        watching = asyncio.create_task(watch.run())
        async with asyncio.timeout(30):
            while (await store.client.execute("CONFIG", "GET", "auto-aof-rewrite-percentage"))[1] != b"100":
                await asyncio.sleep(0.05)
        watching.cancel()
        await store.close()


def pages_in_memory(file):
    """How many pages of a file the system holds in memory."""
    size, page = file.stat().st_size, mmap.PAGESIZE
    held = (ctypes.c_ubyte * (size // page))()
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), size) as content:
        address = ctypes.addressof(ctypes.c_char.from_buffer(content))
        assert ctypes.CDLL(None).mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), held) == 0
    return sum(each & 1 for each in held)


def test_what_was_written_before_the_last_look_takes_no_memory_of_the_system(tmp_path):
    file = tmp_path / "appendonlydir" / "appendonly.aof.1.incr.aof"
    file.parent.mkdir()
    disk, written = StoreDisk(tmp_path), 4 * MIB
    with file.open("ab", buffering=0) as opened:
        for _ in range(3):
            opened.write(b"x" * written)
            os.fsync(opened.fileno())
            disk.measure(DiskSpace(), 0)
    assert pages_in_memory(file) <= written // mmap.PAGESIZE
