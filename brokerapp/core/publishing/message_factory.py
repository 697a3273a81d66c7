"""MessageFactory: makes messages of what clients send."""

from __future__ import annotations

import time
import zlib
from typing import TYPE_CHECKING

from brokerapp.engine.policy.persistency import forced_persistency
from brokerapp.engine.policy.time_stamping import apply_timestamps
from brokerapp.model.commands import SendCommand
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, escape, stored_fields

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, RoutingPort


class MessageIds:
    """Numbers the messages of a session."""

    __slots__ = ("first_line", "last_number", "prefix")

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix  #: of each message-id
        self.first_line = f"message-id:{escape(prefix)}"  #: how the head of each message begins
        self.last_number = 0

    def next_number(self) -> int:
        """Return what follows the prefix in a message-id that nobody had."""
        self.last_number += 1
        return self.last_number


class MessageTemplate:
    """What messages have in common that are sent alike: all but id, properties and body."""

    __slots__ = (
        "_begun", "_expires", "_fields", "_held", "_ids", "_is_bytes", "_now_us", "_persistent", "_priority", "_rest",
    )  # fmt: skip

    def __init__(
        self,
        ids: MessageIds,
        *,
        persistent: bool,
        priority: int,
        expires: int,
        timestamp: int | None,
        is_bytes: bool,
        now_us: int,
        held: tuple[str, ...] = (),
    ) -> None:
        self._ids, self._persistent, self._priority, self._expires = ids, persistent, priority, expires
        self._is_bytes, self._now_us, self._held = is_bytes, now_us, held
        timestamp = now_us // 1000 if timestamp is None else timestamp
        kept = "persistent:true\n" if persistent else ""
        self._rest = f"\nexpires:{expires}\npriority:{priority}\ntimestamp:{timestamp}\n{kept}"
        self._fields = stored_fields(persistent, priority, expires, now_us, held=held)
        self._begun = zlib.crc32(self._fields)

    def make(self, properties: str, body: bytes, id: str | None = None) -> Message:
        """Return a new message, with the id that its client gave it or else a new one."""
        if id is None:
            ids, number = self._ids, self._ids.next_number()
            id, first_line = f"{ids.prefix}{number}", f"{ids.first_line}{number}"
        else:
            first_line = f"message-id:{escape(id)}"
        length = f"content-length:{len(body)}\n" if self._is_bytes else ""
        head = f"{first_line}{self._rest}{properties}{length}".encode()
        return Message(
            id, head, body, self._persistent, self._priority, self._expires, self._now_us,
            "JMSXGroupID:" in properties, held=self._held,
        )  # fmt: skip

    def stored(self, message: Message) -> bytes:
        """Return the stored form of a message that it made."""
        head, body = message.head, message.body
        checksum = zlib.crc32(body, zlib.crc32(b"\n", zlib.crc32(head, self._begun)))
        return b"%b#%08x\n%b\n%b" % (self._fields, checksum, head, body)


class MessageFactory:
    """Gives messages their ids, and what broker and policies say of how they are sent. A part of the broker."""

    def __init__(self, *, context: BrokerContext, routing: RoutingPort) -> None:
        self._settings, self._routing = context.settings, routing
        self._ids = MessageIds(f"ID:{context.name}-{context.session}:")

    @property
    def last_id(self) -> str:
        """The message-id that was given last."""
        return f"{self._ids.prefix}{self._ids.last_number}"

    def next_id(self) -> str:
        """A message-id nobody had."""
        return f"{self._ids.prefix}{self._ids.next_number()}"

    def message(self, send: SendCommand) -> Message:
        """What a client sends, as a message; what another broker passes on keeps its id and its path."""
        made = self.template(send, time.time_ns() // 1000).make(send.properties, send.body, send.message_id)
        passed_on = send.bridged_from
        if passed_on is None:
            return made
        head = made.head[made.head.index(b"\n") :]
        id = f"message-id:{escape(passed_on.message_id)}".encode()
        return Message(
            passed_on.message_id, id + head, made.body, made.persistent, made.priority, made.expires, made.born_us,
            made.has_group, path=passed_on.path, held=passed_on.held,
        )  # fmt: skip

    def template(self, send: SendCommand, now_us: int, held: tuple[str, ...] = ()) -> MessageTemplate:
        """Return what messages that are sent like this one at this time have in common."""
        timestamp, expires = send.timestamp, send.expires
        if (rules := self._settings.time_stamping) is not None and send.bridged_from is None:
            timestamp, expires = apply_timestamps(rules, timestamp, expires, now_us // 1000)
        return MessageTemplate(
            self._ids, persistent=self._is_persistent(send), priority=send.priority, expires=expires,
            timestamp=timestamp, is_bytes=send.is_bytes, now_us=now_us, held=held,
        )  # fmt: skip

    def _is_persistent(self, send: SendCommand) -> bool:
        """As its sender has it, unless the broker or, before that, the policy of where it is sent says otherwise."""
        topology, forced = self._routing.table, self._settings.force_persistency
        if topology.forces_persistency:
            forced = forced_persistency(map(topology.policy_for, Destination.parse_list(send.destination)), forced)
        return send.persistent if forced is None else forced
