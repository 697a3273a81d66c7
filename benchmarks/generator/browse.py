"""Browsing: somebody pages through a queue while it is consumed.

The queue is filled before the clock starts. For every so many messages that are consumed a page is browsed, so that
brokers of any speed browse as much for a message. The last page of a queue is followed by the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from benchmarks.generator.connection import Connection
from benchmarks.generator.load import Load, Outcome, consumer_groups, run
from benchmarks.generator.traffic import Traffic
from benchmarks.protocol.dialect import Dialect
from benchmarks.protocol.frames import ack_block, ack_ids, frame, message_numbers
from benchmarks.scenarios.routes import QUEUE, Unread

#: Messages of a page: one more than ActiveMQ shows a browser, which needs no acknowledgement then (and allows none).
PAGE = 401
#: Messages consumed for each page browsed.
CONSUMED_A_PAGE = 1_000


class Browser(Connection):
    """Asks for pages and notes what it saw."""

    def __init__(self, address: tuple[str, int], dialect: Dialect) -> None:
        super().__init__(address, dialect)
        self._subscribe = dialect.queue(QUEUE, PAGE) | {"browser": "true", "ack": "client-individual"}
        self._pages = self._number = 0
        self._unanswered: list[bytes] = []
        self._is_at_end = True
        self.seen: list[list[bytes]] = []

    def fill(self, consumed: int) -> None:
        """Ask for the next page when it is time, and the last one is here."""
        if consumed < self._pages * CONSUMED_A_PAGE:
            return
        if self._is_at_end:
            self.write(self._begin())
        elif len(self._unanswered) == PAGE:
            self.write(ack_block(self._unanswered))
        else:
            return
        self._unanswered = []
        self._pages += 1

    def _begin(self) -> bytes:
        ended = frame("UNSUBSCRIBE", {"id": self._number}) if self._number else b""
        self._number += 1
        self._is_at_end = False
        self.seen.append([])
        return ended + frame("SUBSCRIBE", {**self._subscribe, "id": self._number})

    def received(self, heads: bytes) -> None:
        self._unanswered += ack_ids(heads)
        self.seen[-1] += message_numbers(heads)
        if b"\nbrowser:end" in heads:
            self._is_at_end = True

    def faults(self) -> list[str]:
        """What is wrong with what it saw."""
        found = [] if any(self.seen) else ["a browser saw nothing"]
        for numbers in (list(map(int, each)) for each in self.seen):
            found += [f"a browser saw {second} after {first}" for first, second in pairwise(numbers) if second <= first]
        return found[:1]


class _BrowsedLoad(Load):
    """The loop of a run beside which somebody browses."""

    def __init__(self, traffic: Traffic, groups: Sequence, browser: Browser) -> None:
        super().__init__(traffic.scenario, list(groups), [])
        self._browser = browser
        self.open.add(browser)

    def _fill(self) -> None:
        self._browser.fill(self.delivered)

    def _discrepancies(self) -> str:
        return "; ".join([*filter(None, [super()._discrepancies()]), *self._browser.faults()])

    def close(self) -> None:
        super().close()
        self._browser.socket.close()


def fill(traffic: Traffic, address: tuple[str, int], dialect: Dialect, messages: int) -> None:
    """Send the messages that will be browsed and consumed."""
    unread = replace(traffic.scenario, route=Unread(traffic.scenario.route.destination(0)))
    run(Traffic(unread), address, dialect, messages)


def run_browsed(traffic: Traffic, address: tuple[str, int], dialect: Dialect, messages: int) -> Outcome:
    """Consume the messages, while they are browsed. Raises RunFailed."""
    groups = consumer_groups(traffic, address, dialect, messages)
    load = _BrowsedLoad(traffic, groups, Browser(address, dialect))
    try:
        return load.measure()
    finally:
        load.close()
