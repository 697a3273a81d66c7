"""Decide which messages a topic retains for retroactive consumers. Pure.

ActiveMQ's subscription recovery policies: the last message, the last so many, the last so many bytes, those of the last
while. Beside that every topic keeps the last message that was sent with `ActiveMQ.Retain:true`, until one without a
body takes it away. All of it is in memory and bounded: a topic keeps at most MAX_BYTES, whatever its policy says.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from brokerapp.model.definitions import RecoveryPolicy
from brokerapp.model.message import Message, RoutedCopy

#: The header that has the last message kept, and the one its late subscribers see instead.
RETAIN, RETAINED = "ActiveMQ.Retain", "ActiveMQ.Retained"
#: Most bytes that one topic keeps.
MAX_BYTES = 64 * 1024 * 1024
#: Bytes that a kept message takes beside its head and body.
OVERHEAD = 512

#: ActiveMQ's defaults: messages of `fixedCount`, bytes of `fixedSized`, milliseconds of `timed`.
DEFAULT_COUNT = 100
DEFAULT_BYTES = 6_553_600
DEFAULT_DURATION_MS = 60_000


@dataclass(slots=True)
class RetainedMessage:
    """A message of a topic, with where it went."""

    message: Message
    copy: RoutedCopy
    at_ms: int  #: when it was published, since the epoch
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = len(self.message.head) + len(self.message.body) + OVERHEAD


class RetainedMessages:
    """The messages that one topic retains."""

    __slots__ = ("bytes", "is_retained_known", "recent", "retained")

    def __init__(self) -> None:
        self.retained: RetainedMessage | None = None
        self.is_retained_known = False  #: what is retained, if anything, is known: what others remember of it is older
        self.recent: deque[RetainedMessage] = deque()
        self.bytes = 0

    def add(self, message: Message, copy: RoutedCopy, policy: RecoveryPolicy | None, now_ms: int) -> None:
        """Retain a message that was published, as the policy says."""
        if message.headers.get(RETAIN, "").lower() == "true":
            self._retain(message, copy, now_ms)
        if policy is not None:
            kept = RetainedMessage(message, copy, now_ms)
            self.recent.append(kept)
            self.bytes += kept.size
        self.trim(policy, now_ms)

    def learn(self, retained: RetainedMessage | None, recent: Iterable[RetainedMessage]) -> None:
        """Another one remembers these, in order, with ages as of one moment: what is known here besides takes its place
        among them by when it was published. Of what is known to both its word counts: by ages as of two moments
        neighbours would change places.
        """
        if retained is not None and not self.is_retained_known:
            self.is_retained_known = True
            self.retained = retained
            self.bytes += retained.size
        told = {each.message.id: each for each in recent}
        besides = [each for each in self.recent if each.message.id not in told]
        everything = sorted([*besides, *told.values()], key=lambda each: each.at_ms)
        self.bytes += sum(each.size for each in everything) - sum(each.size for each in self.recent)
        self.recent = deque(everything)

    def _retain(self, message: Message, copy: RoutedCopy, now_ms: int) -> None:
        self.is_retained_known = True
        if self.retained is not None:
            self.bytes -= self.retained.size
            self.retained = None
        if message.body:
            self.retained = RetainedMessage(message.with_headers({RETAIN: None, RETAINED: "true"}), copy, now_ms)
            self.bytes += self.retained.size

    def trim(self, policy: RecoveryPolicy | None, now_ms: int) -> None:
        """Forget what the policy does not keep any more."""
        while self.recent and (policy is None or self.bytes > MAX_BYTES or _EXCEEDS[policy.kind](self, policy, now_ms)):
            self.bytes -= self.recent.popleft().size

    def messages(self, policy: RecoveryPolicy | None, now_ms: int) -> list[RetainedMessage]:
        """Return the retained messages for a new subscriber, in order, without expired ones."""
        self.trim(policy, now_ms)
        found = [self.retained, *self.recent] if self.retained is not None else list(self.recent)
        return [each for each in found if not 0 < each.message.expires <= now_ms]


#: Kind of policy -> whether its oldest message is one too many.
_EXCEEDS: dict[str, Callable[[RetainedMessages, RecoveryPolicy, int], bool]] = {
    "none": lambda _memory, _policy, _now_ms: True,
    "lastImage": lambda memory, _policy, _now_ms: len(memory.recent) > 1,
    "fixedCount": lambda memory, policy, _now_ms: len(memory.recent) > (policy.maximum_size or DEFAULT_COUNT),
    "fixedSized": lambda memory, policy, _now_ms: memory.bytes > (policy.maximum_size or DEFAULT_BYTES),
    "timed": lambda memory, policy, now_ms: (
        memory.recent[0].at_ms <= now_ms - (policy.recover_duration or DEFAULT_DURATION_MS)
    ),
}
