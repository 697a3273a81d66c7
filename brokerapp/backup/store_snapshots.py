"""Take snapshots of all stores of a broker that belong together.

One server forks at one moment. Several are made to hold all writes, for some milliseconds, until each of them has
forked: a write over several shards is then in all snapshots, in none, or in those that its intent names to finish it.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from brokerapp.backup.container import BackupWriter, Progress
from brokerapp.backup.manifest import StoreEntry
from brokerapp.backup.server_snapshot import ServerSnapshot
from brokerapp.errors import BackupRefused, BrokerError, StoreUnavailable
from brokerapp.store.client.keys import StoreKeys
from brokerapp.system.store_address import without_password

logger = logging.getLogger(__name__)

#: Seconds for which servers hold writes at most. They end the pause by themselves, whatever becomes of this process.
PAUSE_SECONDS = 2.0
#: Seconds of them within which all must have forked, or the pause was for nothing.
FORK_SECONDS = 1.5
#: Attempts: a server that writes a file in the background cannot fork for a snapshot.
ATTEMPTS = 5
#: Seconds between two looks whether a server still writes such a file, and for which that is waited for.
POLL_SECONDS, CHILD_SECONDS = 0.2, 600.0


@dataclass(frozen=True, slots=True)
class ShardStore:
    """One shard of a broker and the URL of its store."""

    number: int
    url: str


@dataclass(frozen=True, slots=True)
class TakenSnapshots:
    """The snapshots of a broker's stores."""

    stores: tuple[StoreEntry, ...]
    made: str
    pause_ms: float  #: for how long writes were held; 0 with one server


class _Server:
    """A server and the shards that are in it."""

    def __init__(self, snapshot: ServerSnapshot, url: str, broker: str) -> None:
        self.snapshot, self.url, self._broker = snapshot, url, broker
        self.shards: list[int] = []
        self._facts = snapshot.facts()
        self._counters = [0, 0, 0, 0]

    def look(self) -> int:
        """Note what the store has counted so far; return the position of its replication."""
        names = ("epoch", "changes", "seq", "format")
        found = self.snapshot.ask("HMGET", StoreKeys(self._broker, self.shards[0]).state, *names)
        self._counters = [int(each or 0) for each in found]
        self._facts = self.snapshot.facts()
        return self._facts.offset

    def check_unchanged(self) -> None:
        """Raise StoreUnavailable where another server is the primary by now.

        It took over at an unknown moment: what it confirmed before the backup began is not in the snapshot.
        """
        keys = StoreKeys(self._broker, self.shards[0])
        with closing(ServerSnapshot(self.url, keys)) as asked:  # by new connections, which look for the primary
            if asked.facts().run_id != self._facts.run_id:
                name = without_password(self.url)
                raise StoreUnavailable(f"the primary of the store at {name} changed during the backup: start it again")

    def entry(self) -> StoreEntry:
        """Describe the snapshot that has begun."""
        epoch, changes, seq, format = self._counters
        return StoreEntry(
            part=f"store-{self.shards[0]}.rdb", shards=tuple(self.shards), database=self.snapshot.database,
            server=self._facts.version, life=self._facts.life, offset=self.snapshot.offset,
            epoch=epoch, changes=changes, seq=seq, format=format or 1,
        )  # fmt: skip


def take_snapshots(url: str, broker: str, writer: BackupWriter, report: Progress) -> TakenSnapshots:
    """Write snapshots of all stores of a broker as parts of a backup. `url` is that of shard 0.

    Raises StoreUnavailable, BackupRefused, OSError.
    """
    with ExitStack() as opened:
        shards = _shards_of(url, broker)
        servers = _servers_of(shards, broker, opened)
        if len(servers) == 1:
            pause = _begin_one(servers[0])
        else:
            pause = _begin_all(servers, broker, shards, report)
        made = datetime.now(UTC).isoformat(timespec="milliseconds")
        entries = [each.entry() for each in servers]
        if len(servers) == 1:
            _write(servers[0], entries[0], writer, report)
        else:
            _write_all(servers, entries, writer, report)
        for each in servers:
            each.check_unchanged()
        return TakenSnapshots(tuple(entries), made, 1000 * pause)


def _shards_of(url: str, broker: str) -> list[ShardStore]:
    """Return the shards of a broker. Raises BackupRefused where the store has no such broker."""
    keys = StoreKeys(broker)
    asked = ServerSnapshot(url, keys)
    try:
        if not asked.ask("EXISTS", keys.state):
            raise BackupRefused(f"the store has no broker {broker!r}: check its name and the URL of the store")
        record = asked.ask("HGETALL", keys.shards)
        others = {int(number): json.loads(each)["url"] for number, each in record.items()}
    finally:
        asked.close()
    return [ShardStore(0, url), *(ShardStore(number, others[number]) for number in sorted(others))]


def _servers_of(shards: Sequence[ShardStore], broker: str, opened: ExitStack) -> list[_Server]:
    """Return the servers of the shards: those of a cluster may have several of them.

    Raises BackupRefused for shards in different databases of one server: a restore keeps one database of a snapshot.
    """
    servers: dict[str, _Server] = {}
    for shard in shards:
        snapshot = ServerSnapshot(shard.url, StoreKeys(broker, shard.number))
        opened.callback(snapshot.close)
        server = servers.setdefault(snapshot.facts().run_id, _Server(snapshot, shard.url, broker))
        if server.snapshot.database != snapshot.database:
            raise BackupRefused(
                f"shards {server.shards[0]} and {shard.number} are in different databases of one server, which cannot "
                "be backed up: drain one of them, and add a shard on a server of its own"
            )
        server.shards.append(shard.number)
    return list(servers.values())


# -- the moment of the snapshots


def _begin_one(server: _Server) -> float:
    """Have the only server begin; nothing is held for it."""
    for _ in range(ATTEMPTS):
        _wait_without_child(server.snapshot)
        least = server.look()
        server.snapshot.prepare()
        server.snapshot.request()
        if server.snapshot.wait_until_begun(least):
            return 0.0
        server.snapshot.give_up()
    raise StoreUnavailable("the store does not begin a snapshot: another one may be under way")


def _begin_all(servers: Sequence[_Server], broker: str, shards: list[ShardStore], report: Progress) -> float:
    """Have all servers begin while none of them writes; return for how many seconds that was."""
    for attempt in range(1, ATTEMPTS + 1):
        for each in servers:
            _wait_without_child(each.snapshot)
            each.snapshot.prepare()
        seconds = _begin_in_pause(servers)
        if seconds is not None:
            if _shards_of(servers[0].url, broker) != shards:
                raise StoreUnavailable("shards were added or removed during the backup: start it again")
            return seconds
        for each in servers:
            each.snapshot.give_up()
        report(f"attempt {attempt}: a store was busy and took no snapshot within {FORK_SECONDS:g} s")
    raise StoreUnavailable(f"not all stores took a snapshot within {FORK_SECONDS:g} s: try again with less load")


def _begin_in_pause(servers: Sequence[_Server]) -> float | None:
    """Return for how long writes were held; None where that was too short for all to begin."""
    began = time.monotonic()
    try:
        _at_once(servers, lambda each: each.snapshot.pause(PAUSE_SECONDS))
        least = {id(each): each.look() for each in servers}
        for each in servers:
            each.snapshot.request()
        for each in servers:
            left = began + FORK_SECONDS - time.monotonic()
            if not each.snapshot.wait_until_begun(least[id(each)], left):
                return None
        held = time.monotonic() - began
        return held if held < PAUSE_SECONDS else None
    finally:
        _at_once(servers, _end_pause)


def _end_pause(server: _Server) -> None:
    with suppress(BrokerError):  # it ends by itself
        server.snapshot.end_pause()


def _wait_without_child(snapshot: ServerSnapshot) -> None:
    deadline = time.monotonic() + CHILD_SECONDS
    while snapshot.facts().has_child:
        if time.monotonic() > deadline:
            raise StoreUnavailable("a store has been writing a file in the background for too long: try again later")
        time.sleep(POLL_SECONDS)


# -- their content


def _write(server: _Server, entry: StoreEntry, writer: BackupWriter, report: Progress) -> None:
    with writer.part(entry.part) as part:
        size = server.snapshot.read(part.write)
    report(f"store of shard {_numbers(entry)}: {size:,} bytes")


def _write_all(
    servers: Sequence[_Server], entries: Sequence[StoreEntry], writer: BackupWriter, report: Progress
) -> None:
    """Read all snapshots at once, as a server gives up one that is not read."""

    def read(at: int) -> None:
        with writer.part_beside(entries[at].part) as part:
            size = servers[at].snapshot.read(part.write)
        report(f"store of shard {_numbers(entries[at])}: {size:,} bytes")

    _at_once(range(len(servers)), read)


def _numbers(entry: StoreEntry) -> str:
    return ", ".join(map(str, entry.shards))


def _at_once(subjects: Sequence[Any], do: Callable[[Any], None]) -> None:
    """Do this with all of them at the same time; raise the first error."""
    errors: list[BaseException] = []

    def run(subject: Any) -> None:
        try:
            do(subject)
        except BaseException as error:  # raised below, in the thread that waits
            errors.append(error)

    threads = [threading.Thread(target=run, args=(each,), name="snapshot") for each in subjects]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if errors:
        raise errors[0]
