"""What ends a node that was taken for dead and joins again: the next signal, as before its first start."""

import asyncio
import signal

from brokerapp.errors import Fenced
from brokerapp.management.commands.runbroker import STOPS, Command


class Expelled:
    """A node that others took for dead."""

    def __init__(self) -> None:
        self.failed = asyncio.get_running_loop().create_future()
        self.failed.set_exception(Fenced("taken for dead"))
        self.abandoned = False

    async def was_expelled(self) -> bool:
        return True

    async def abandon(self) -> None:
        self.abandoned = True


async def test_between_two_lives_of_a_node_a_signal_ends_the_process():
    before = {number: signal.getsignal(number) for number in STOPS}
    try:
        node = Expelled()
        assert await Command()._until_told(node, None, None)
        assert node.abandoned
        assert all(signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler) for number in STOPS)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
