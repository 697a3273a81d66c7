"""Messages: what the producers send. The same number gives the same message in every run and for every broker.

Every body is one line of JSON that begins with the number of the message, by which the ledger knows it again.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

Headers = dict[str, object]

#: Numbers of a producer's messages start at a multiple of this, so that a number tells the producer.
NUMBERS_PER_PRODUCER = 10_000_000
#: A body begins with this and the number of the message.
BODY_START = b'{"order":'
#: Shortest and longest body of an order, in bytes.
SHORTEST, LONGEST = 200, 2500
#: Bodies are cut from so many prepared ones: a prime number, so that no other period meets theirs.
_PREPARED = 1009


def first_number(producer: int) -> int:
    """The number of the first message of a producer."""
    return (producer + 1) * NUMBERS_PER_PRODUCER


def producer_of(number: int) -> int:
    """Which producer sends a message, counted from 0."""
    return number // NUMBERS_PER_PRODUCER - 1


class Messages(Protocol):
    """A kind of messages."""

    def headers(self, number: int) -> Headers:
        """Application headers of message `number`."""
        ...

    def body(self, number: int) -> bytes:
        """Body of message `number`: JSON without NUL and line end."""
        ...


@dataclass(frozen=True)
class Orders:
    """Messages of an order system: a correlation id, 8 properties of which 5 differ in each message, a JSON body.

    Bodies have `shortest` to `longest` bytes, evenly distributed; names, values and lengths follow from `seed`.
    """

    shortest: int = SHORTEST
    longest: int = LONGEST
    seed: int = 17

    def headers(self, number: int) -> Headers:
        customer = number * 7919 % 100_003
        return {
            "correlation-id": f"{self.seed:04x}-{number * 2654435761 % 2**48:012x}",
            "event": "order.placed",
            "schema": "3",
            "currency": "EUR",
            "order": number,
            "customer": f"C-{customer:06}",
            "total": f"{number * 31 % 500_000 / 100:.2f}",
            "placed": 1_760_000_000_000 + number * 37 % 10**9,
            "trace": f"{number * 11400714819323198485 % 2**64:016x}",
        }

    def body(self, number: int) -> bytes:
        return b"%b%d%b" % (BODY_START, number, self._endings[number % _PREPARED])

    @cached_property
    def _endings(self) -> list[bytes]:
        """What follows the number in a body."""
        chance = random.Random(self.seed)
        return [self._ending(chance, chance.randint(self.shortest, self.longest)) for _ in range(_PREPARED)]

    def _ending(self, chance: random.Random, length: int) -> bytes:
        """Lines of an order, and a note that fills it up to the length."""
        room = length - len(BODY_START) - len(str(NUMBERS_PER_PRODUCER))
        lines: list[dict] = []
        while len(text := _json(lines, "")) < room - 80 and len(lines) < 12:
            price = chance.randint(99, 99_999) / 100
            lines.append({"sku": f"{chance.randrange(36**6):08x}", "quantity": chance.randint(1, 9), "price": price})
        while len(text) > room:
            lines.pop()
            text = _json(lines, "")
        letters = "abcdefghijklmnopqrstuvwxyz     "
        return _json(lines, "".join(chance.choices(letters, k=room - len(text)))).encode()


def _json(lines: list[dict], note: str) -> str:
    return f',"lines":{json.dumps(lines, separators=(",", ":"))},"note":"{note}"}}'


@dataclass(frozen=True)
class Plain:
    """Messages with bodies of one length and no header of the application, or with one that differs in each message.

    Without it all headers but `receipt` are the same in all messages, as hardly any application sends them.
    """

    length: int = 1024
    has_own_header: bool = False
    _padding: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        room = self.length - len(BODY_START) - len(str(NUMBERS_PER_PRODUCER)) - len(b',"padding":""}')
        object.__setattr__(self, "_padding", b',"padding":"%b"}' % (b"x" * room))

    def headers(self, number: int) -> Headers:
        return {"order": number} if self.has_own_header else {}

    def body(self, number: int) -> bytes:
        return b"%b%d%b" % (BODY_START, number, self._padding)
