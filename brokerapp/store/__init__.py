"""Store: durable storage as the broker needs it, and the records it exchanges with it.

Every verb is atomic. `commit` is what changes messages: it takes a batch of units, each done whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from brokerapp.message import Message

#: `kind` among the attributes of a log that belongs to nobody any more: it goes with all it holds.
DISCARDED = "discarded"


class Settled(Protocol):
    """An entry to remove."""

    log: str  #: where it is
    seq: int
    payload: int  #: number of the payload it refers to; 0: it holds its message itself
    size: int  #: bytes of the stored message


class Unit:
    """What one client asked to be done at once. `done` is called once, with the outcome.

    `appends`: stored form, and the copies as (log name, original destination or "", shown destination or "").
    `moves`: it appends what it settles, in another form or place, so that limits do not stand in its way.
    """

    __slots__ = ("appends", "moves", "settles", "then")

    def __init__(
        self,
        appends: Sequence[tuple[bytes, Sequence[tuple[str, str, str]]]] = (),
        settles: Sequence[Settled] = (),
        moves: bool = False,
        then: Callable[[int, bool], None] | None = None,
    ) -> None:
        self.appends, self.settles, self.moves, self.then = appends, settles, moves, then

    def done(self, seq: int, refused: bool) -> None:
        """`seq` is the number of the unit's first message, `refused` tells that a limit stood in the way."""
        if self.then is not None:
            self.then(seq, refused)


@dataclass(slots=True)
class Batch:
    """Everything one commit carries."""

    number: int
    units: list[Unit]
    declarations: list[tuple[str, str | None]] = field(
        default_factory=list
    )  #: log name, JSON; None: it is removed if empty
    marks: list[tuple[str, str]] = field(default_factory=list)  #: log name, SEQ or `open`


@dataclass(slots=True)
class Committed:
    """The outcome of a commit: SEQ before the first message, positions of refused units."""

    base: int
    refused: frozenset[int]


@dataclass(slots=True)
class StoredEntry:
    """An entry of a log as read: `payload` is 0 when it holds its message itself."""

    seq: int
    message: Message
    payload: int
    size: int  #: bytes of the stored form
    original: str
    shown: str


@dataclass(slots=True)
class LogState:
    """A log as found at start."""

    name: str
    attributes: dict[str, Any]
    depth: int
    mark: str  #: SEQ up to which messages may have been delivered, `open`: all, or ""


@dataclass(slots=True)
class Limits:
    """Bytes that may be stored; 0: no limit."""

    total: int = 0
    of_log: Callable[[str], int] = lambda _log: 0
