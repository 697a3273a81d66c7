"""Memory: what a broker with its store keeps resident while many messages wait in a queue that nobody reads."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from benchmarks.comparison.rounds import Peer, running
from benchmarks.generator.connection import RunFailed
from benchmarks.generator.load import run
from benchmarks.generator.traffic import Traffic
from benchmarks.scenarios.routes import Unread
from benchmarks.scenarios.rows import QUEUE_SCENARIO

NAME = "memory"
#: Messages that wait.
WAITING = 100_000
TITLE = f"resident memory with {WAITING:,} messages waiting"
#: Share of a broker's resident memory that Sluice's is to stay below, while the messages wait.
BARS = {"activemq": 0.5, "rabbitmq": 0.8}
#: Looks at the memory once all receipts are there, a second apart: what the sending took may be given back meanwhile.
LOOKS = 5
#: A queue without consumers.
UNREAD = replace(QUEUE_SCENARIO, name=NAME, title=TITLE, route=Unread(QUEUE_SCENARIO.route.destination(0)))


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """Resident bytes of a peer before the messages came and while they wait; `failure` says why there is none."""

    peer: str
    before: int = 0
    waiting: int = 0
    failure: str | None = None


def measure_memory(peers: Sequence[Peer], scale: float) -> Mapping[str, MemoryResult]:
    """What each peer keeps, one after the other."""
    found = {}
    with running(UNREAD, peers) as addresses:
        for peer in peers:
            before = peer.process.usage().resident_bytes
            try:
                run(Traffic(UNREAD), addresses[peer.name], peer.dialect, int(WAITING * scale))
            except (RunFailed, OSError) as error:
                found[peer.name] = MemoryResult(peer.name, before, failure=str(error))
                continue
            found[peer.name] = MemoryResult(peer.name, before, _resident(peer))
    return found


def _resident(peer: Peer) -> int:
    looks = []
    for _ in range(LOOKS):
        time.sleep(1)
        looks.append(peer.process.usage().resident_bytes)
    return int(median(looks))
