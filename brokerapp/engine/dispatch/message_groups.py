"""Send messages with one JMSXGroupID to one consumer of their queue, in order, while it is there.

ActiveMQ's rules: a new group goes to the consumer with the fewest groups; a message with JMSXGroupSeq 1 gives the group
to whoever gets that message, one with a negative number closes it. Who owns which group is kept in a bounded map of one
of three kinds: `cached` forgets the group not used for longest, `simple` the oldest, `bucket` has one owner for all
groups of equal hash.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from brokerapp.errors import DefinitionRefused

if TYPE_CHECKING:
    from brokerapp.engine.dispatch.subscription import Subscription
    from brokerapp.engine.entries.log_entry import LogEntry

#: Groups a map of kind `simple` keeps: ActiveMQ's has no bound, and their names come from clients.
MAX_SIMPLE_GROUPS = 100_000
#: Most groups or buckets a policy may ask for: each takes some hundred bytes.
MAX_GROUPS = 1_000_000


@dataclass(frozen=True, slots=True)
class GroupMapSettings:
    """Kind and size of the map."""

    kind: str
    size: int


CACHED = GroupMapSettings("cached", 1024)
_has_group = attrgetter("message.has_group")
_KINDS = {
    "cached": (CACHED, "cacheSize"),
    "bucket": (GroupMapSettings("bucket", 1024), "bucketCount"),
    "simple": (GroupMapSettings("simple", MAX_SIMPLE_GROUPS), None),
}


def parse_group_map(text: str | None) -> GroupMapSettings:
    """Parse `messageGroupMapFactoryType`, e.g. `bucket?bucketCount=64`. Raises DefinitionRefused."""
    if not text:
        return CACHED
    kind, _, option = text.strip().partition("?")
    if kind not in _KINDS:
        raise DefinitionRefused(f"messageGroupMapFactoryType {text!r}: the kinds are {', '.join(_KINDS)}")
    default, wanted = _KINDS[kind]
    if not option:
        return default
    name, _, number = option.partition("=")
    if name != wanted or not number.isdecimal() or not 0 < int(number[:9]) <= MAX_GROUPS:
        takes = f"takes {wanted}, from 1 to {MAX_GROUPS}" if wanted else "takes no option"
        raise DefinitionRefused(f"messageGroupMapFactoryType {text!r}: {kind} {takes}")
    return GroupMapSettings(kind, int(number))


def group_of(entry: LogEntry) -> str | None:
    """Return the group of a message; None without one."""
    return entry.message.header("JMSXGroupID") if entry.message.has_group else None


def have_groups(entries: Iterable[LogEntry]) -> bool:
    """Return whether any of these messages may have a group."""
    return any(map(_has_group, entries))


def position_in_group(entry: LogEntry) -> int:
    """Return the JMSXGroupSeq of a message; 0 when it has none that is a number."""
    try:
        return int(entry.message.header("JMSXGroupSeq") or 0)
    except ValueError:
        return 0


class MessageGroups:
    """Map the groups of one queue to the consumers that own them."""

    def __init__(self, wanted: GroupMapSettings = CACHED) -> None:
        self._settings = wanted
        self._owners: dict[str, Subscription] = {}  # the next to be forgotten first
        self._counts: Counter[Subscription] = Counter()
        #: Set when groups lost their owner: messages others were not given may go to them now.
        self.released = False

    def __len__(self) -> int:
        return len(self._owners)

    def __iter__(self) -> Iterator[tuple[str, Subscription]]:
        """Groups (of kind `bucket`: numbers of buckets) with their owners."""
        return iter(self._owners.items())

    def count_owned_by(self, consumer: Subscription) -> int:
        """Return how many groups a consumer owns."""
        return self._counts[consumer]

    def owner(self, group: str) -> Subscription | None:
        """Return the consumer that gets the messages of a group."""
        key = self._key(group)
        found = self._owners.get(key)
        if found is not None and self._settings.kind == "cached":
            self._owners[key] = self._owners.pop(key)
        return found

    def assign(self, group: str, consumer: Subscription) -> None:
        """Give a group to a consumer."""
        key = self._key(group)
        self._release(key)
        self._owners[key] = consumer
        self._counts[consumer] += 1
        if self._settings.kind != "bucket" and len(self._owners) > self._settings.size:
            self._release(next(iter(self._owners)))

    def close(self, group: str) -> bool:
        """Release a group, and return whether anybody owned it."""
        return self._release(self._key(group))

    def remove_consumer(self, consumer: Subscription) -> None:
        """Release the groups of a consumer: others get them with their next messages."""
        if self._counts.pop(consumer, 0):
            self._owners = {key: owner for key, owner in self._owners.items() if owner is not consumer}
            self.released = True

    def reassign(self, former: Subscription, consumer: Subscription) -> None:
        """Give the groups of one consumer to another."""
        count = self._counts.pop(former, 0)
        if count:
            self._counts[consumer] += count
            self._owners = {key: consumer if owner is former else owner for key, owner in self._owners.items()}
            self.released = True

    def clear(self) -> int:
        """Release all groups, and return how many were owned."""
        count = len(self._owners)
        self._owners.clear()
        self._counts.clear()
        self.released = self.released or count > 0
        return count

    def _key(self, group: str) -> str:
        return str(zlib.crc32(group.encode()) % self._settings.size) if self._settings.kind == "bucket" else group

    def _release(self, key: str) -> bool:
        owner = self._owners.pop(key, None)
        if owner is None:
            return False
        self._counts[owner] -= 1
        if not self._counts[owner]:
            del self._counts[owner]
        self.released = True
        return True
