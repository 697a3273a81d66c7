"""Send the heart-beats of a connection, and detect clients that send none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

#: A client is given this many times its own heart-beat interval before it is taken for dead, times what the connector
#: says (hbGracePeriodMultiplier): ActiveMQ looks once an interval, and needs one to two of them to notice.
HEART_BEAT_GRACE = 2.0


class HeartBeats:
    """Sends and expects heart-beats of one connection; readers and writers note their time by the loop's clock."""

    def __init__(self) -> None:
        self.read_at = self.written_at = 0.0
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}

    def start(
        self, loop: asyncio.AbstractEventLoop, agreed: tuple[int, int], grace: float, beat: Callable[[], None],
        on_silent: Callable[[], None],
    ) -> None:  # fmt: skip
        """Call `beat` when it is time to say something, and `silent` when the client should have and did not.

        `agreed` are the intervals in milliseconds of what is sent and what is expected; 0: none.
        """
        sends, expects = (each / 1000 for each in agreed)
        patience = expects * HEART_BEAT_GRACE * grace

        def speak() -> None:
            if loop.time() - self.written_at >= sends / 2:
                beat()

        def listen() -> None:
            if loop.time() - self.read_at > patience:
                on_silent()

        if sends:
            self._every(loop, sends / 2, speak)
        if expects:
            self._every(loop, expects, listen)

    def _every(self, loop: asyncio.AbstractEventLoop, seconds: float, step: Callable[[], None]) -> None:
        def tick() -> None:
            self._timers[step] = loop.call_later(seconds, tick)
            step()

        self._timers[step] = loop.call_later(seconds, tick)

    def stop(self) -> None:
        """Stop sending and expecting heart-beats."""
        for timer in self._timers.values():
            timer.cancel()
