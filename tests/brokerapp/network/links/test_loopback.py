"""Test that a connection in memory ends as one of sockets does, even if it is not read."""

import asyncio

from brokerapp.network.links.loopback import LoopbackTransport


class Heard(asyncio.Protocol):
    """Keeps what it is told."""

    def __init__(self):
        self.data, self.lost = b"", asyncio.Event()

    def data_received(self, data):
        self.data += data

    def connection_lost(self, _error):
        self.lost.set()


def pair():
    near, far = LoopbackTransport(Heard()), LoopbackTransport(Heard())
    near.peer, far.peer = far, near
    return near, far


async def test_what_was_written_before_the_end_is_read_by_who_reads_on_later():
    near, far = pair()
    far.pause_reading()
    near.write(b"last")
    near.close()
    await near._protocol.lost.wait()
    await asyncio.sleep(0)
    assert (far._protocol.data, far._protocol.lost.is_set(), far.is_closing()) == (b"", False, False)
    far.resume_reading()
    await asyncio.wait_for(far._protocol.lost.wait(), 10)
    assert far._protocol.data == b"last"


async def test_who_is_not_read_from_can_still_be_sent_away():
    near, far = pair()
    far.pause_reading()
    near.write(b"last")
    near.close()
    await near._protocol.lost.wait()
    far.close()
    await asyncio.wait_for(far._protocol.lost.wait(), 10)
    assert near._protocol.data == far._protocol.data == b""


async def test_nothing_is_told_to_who_is_gone():
    near, far = pair()
    near.close()
    await asyncio.wait_for(far._protocol.lost.wait(), 10)
    far.write(b"too late")
    await asyncio.sleep(0)
    assert near._protocol.data == b""
