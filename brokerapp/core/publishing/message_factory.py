"""MessageFactory: makes messages of what clients send."""

from __future__ import annotations

import time
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

from brokerapp.engine.policy.persistency import forced_persistency
from brokerapp.engine.policy.time_stamping import apply_timestamps
from brokerapp.model.commands import SendCommand
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, escape, stored_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from brokerapp.core.ports import BrokerContext, RoutingPort


class MessageTemplate:
    """What messages have in common that are sent alike: all but id, properties and body."""

    __slots__ = ("_begun", "_fields", "_first_line", "_held", "_next_number", "_now_us", "_prefix", "_rest", "_send")

    def __init__(
        self, send: SendCommand, prefix: str, next_number: Callable[[], int], now_us: int, held: tuple[str, ...] = ()
    ) -> None:  # fmt: skip
        self._send, self._prefix, self._next_number, self._now_us, self._held = send, prefix, next_number, now_us, held
        timestamp = now_us // 1000 if send.timestamp is None else send.timestamp
        self._first_line = f"message-id:{escape(prefix)}"
        self._rest = f"\nexpires:{send.expires}\npriority:{send.priority}\ntimestamp:{timestamp}\n"
        self._rest += "persistent:true\n" if send.persistent else ""
        self._fields = stored_fields(send.persistent, send.priority, send.expires, now_us, held=held)
        self._begun = zlib.crc32(self._fields)

    def make(self, properties: str, body: bytes) -> Message:
        """Return a new message."""
        send, number = self._send, self._next_number()
        length = f"content-length:{len(body)}\n" if send.is_bytes else ""
        head = f"{self._first_line}{number}{self._rest}{properties}{length}".encode()
        return Message(
            f"{self._prefix}{number}", head, body, send.persistent, send.priority, send.expires, self._now_us,
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
        self._prefix = f"ID:{context.name}-{context.session}:"
        self._messages = 0

    @property
    def last_id(self) -> str:
        """The message-id that was given last."""
        return f"{self._prefix}{self._messages}"

    def next_id(self) -> str:
        """A message-id nobody had."""
        return f"{self._prefix}{self._next_number()}"

    def _next_number(self) -> int:
        self._messages += 1
        return self._messages

    def message(self, send: SendCommand) -> Message:
        """What a client sends, as a message; what another broker passes on keeps its id and its path."""
        made = self.template(send, time.time_ns() // 1000).make(send.properties, send.body)
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
        like = replace(send, timestamp=timestamp, expires=expires, persistent=self._is_persistent(send))
        return MessageTemplate(like, self._prefix, self._next_number, now_us, held)

    def _is_persistent(self, send: SendCommand) -> bool:
        """As its sender has it, unless the broker or, before that, the policy of where it is sent says otherwise."""
        topology, forced = self._routing.table, self._settings.force_persistency
        if topology.forces_persistency:
            forced = forced_persistency(map(topology.policy_for, Destination.parse_list(send.destination)), forced)
        return send.persistent if forced is None else forced
