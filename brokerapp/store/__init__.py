"""Store: durable storage as the broker needs it, and the records it exchanges with it.

Every verb is atomic. `commit` is what changes messages: it takes a batch of units, each done whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from brokerapp.message import Message

#: What is full when it is no single log.
STORE = "store"
#: What refuses a unit that ends a job which is no more.
GONE = "job"


class Settled(Protocol):
    """An entry to remove."""

    log: str  #: where it is
    seq: int
    payload: int  #: number of the payload it refers to; 0: it holds its message itself
    size: int  #: bytes of the stored message


@dataclass(slots=True)
class JobChange:
    """A job to keep, under an id and until a moment (milliseconds since the epoch). Without a record: it is done.

    A unit that changes or ends a job that is gone, rather than bringing a new one, is refused.
    """

    id: str
    due_ms: int = 0
    record: bytes = b""
    new: bool = False


class Unit:
    """What one client asked to be done at once. `done` is called once, with the outcome.

    `appends`: stored form, and the copies as (log name, original destination or "", shown destination or "").
    `moves`: it appends what it settles, in another form or place, so that limits do not stand in its way.
    `droppable`: copies that are not kept rather than refuse the unit, as (message, first copy, last copy) from 1.
    `dropped`: those that were not kept, as (message, copy) from 1; known when it is done.
    """

    __slots__ = ("appends", "droppable", "dropped", "moves", "settles", "then")

    jobs: Sequence[
        JobChange
    ] = ()  #: what becomes of jobs in the same moment; a class that has some has a slot for them

    def __init__(
        self,
        appends: Sequence[tuple[bytes, Sequence[tuple[str, str, str]]]] = (),
        settles: Sequence[Settled] = (),
        moves: bool = False,
        then: Callable[[int, str], None] | None = None,
        droppable: Sequence[tuple[int, int, int]] = (),
    ) -> None:
        self.appends, self.settles, self.moves, self.then = appends, settles, moves, then
        self.droppable, self.dropped = droppable, ()

    def done(self, seq: int, refused: str) -> None:
        """`seq` is the number of the unit's first message, `refused` "", what is full (a log or STORE), or GONE."""
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
    returned: list[tuple[str, int, int]] = field(default_factory=list)  #: log name, SEQ, deliveries so far


@dataclass(slots=True)
class Committed:
    """The outcome of a commit: SEQ before the first message, and by position of the unit (from 1) what refused it (the
    name of a full log, or STORE) and its copies that were not kept (see Unit).
    """

    base: int
    refused: Mapping[int, str] = field(default_factory=dict)
    dropped: Mapping[int, list[tuple[int, int]]] = field(default_factory=dict)


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
class StoredJob:
    """A job as read."""

    id: str
    due_ms: int  #: milliseconds since the epoch
    record: bytes


@dataclass(slots=True)
class LogState:
    """A log as found at start."""

    name: str
    attributes: dict[str, Any]
    depth: int
    mark: str  #: SEQ up to which messages may have been delivered, `open`: all, or ""
    returned: dict[int, int] = field(default_factory=dict)  #: SEQ -> deliveries, of entries that came back


@dataclass(slots=True)
class Limits:
    """Bytes that may be stored; 0: no limit."""

    total: int = 0
    of_log: Callable[[str], int] = lambda _log: 0
