"""Test how matching messages are counted in a queue that is consumed meanwhile. Pure."""

import pytest

from brokerapp.admin.browsing import BROWSE_PAGE, BrowsingAdmin
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message
from brokerapp.model.stats_records import MatchCount
from brokerapp.store import StoredLogEntry

QUEUE = Destination.queue("q")
LOOK = 2 * BROWSE_PAGE
ALL = "TRUE"


class Shrinking:
    """A store of one queue, whose consumers take each page that was read as soon as it was."""

    def __init__(self, held: int) -> None:
        self.seqs = list(range(1, held + 1))
        self.entries = self.logs = self

    async def attributes(self, _log: str) -> dict[str, str]:
        return {"kind": "queue"}

    async def depths(self, logs: list[str]) -> dict[str, int]:
        return dict.fromkeys(logs, len(self.seqs))

    async def read(self, _log: str, after: int, count: int) -> list[StoredLogEntry]:
        return self._taken([each for each in self.seqs if each > after][:count])

    async def read_back(self, _log: str, before: int, count: int) -> list[StoredLogEntry]:
        return self._taken([each for each in reversed(self.seqs) if each < before][:count])

    def _taken(self, seqs: list[int]) -> list[StoredLogEntry]:
        if len(seqs) > 1:  # not only looked whether there is more
            self.seqs = sorted({*self.seqs} - {*seqs})
        return [StoredLogEntry(each, Message("1", b"message-id:1\n", b""), 0, 0, "", "") for each in seqs]


@pytest.mark.parametrize("way", ["count", "count_back"])
@pytest.mark.parametrize(
    ("held", "tally"),
    [
        (LOOK, MatchCount(LOOK)),
        (LOOK - 1, MatchCount(LOOK - 1)),
        (LOOK + LOOK // 2, MatchCount(LOOK, is_whole=False, looked_at=LOOK, of=LOOK + 1)),
        (3 * LOOK, MatchCount(LOOK, is_whole=False, looked_at=LOOK, of=2 * LOOK)),
    ],
)
async def test_a_count_is_whole_when_nothing_is_left_to_read_however_few_the_queue_holds_by_then(way, held, tally):
    door = BrowsingAdmin("redis://localhost:1", "any")
    door._store = Shrinking(held)
    assert await getattr(door, way)(QUEUE, selector=ALL, scan=LOOK) == tally
