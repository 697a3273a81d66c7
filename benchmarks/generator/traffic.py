"""Traffic: the SEND frames of a run, written before its clock starts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.protocol.frames import frame
from benchmarks.scenarios.messages import Headers, first_number
from benchmarks.scenarios.rows import Scenario


@dataclass(frozen=True, slots=True)
class Block:
    """What one write sends, and how many messages it holds."""

    data: bytes
    messages: int


class Traffic:
    """What the producers of a scenario send. It is kept, so that the rounds of all brokers send the same bytes."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._blocks: list[list[Block]] = [[] for _ in range(scenario.producers)]

    def messages_of_each(self, messages: int) -> int:
        """How many each producer sends when all are to send about so many: whole blocks, at least one."""
        size = self.scenario.block
        return max(1, messages // (self.scenario.producers * size)) * size

    def numbers(self, producer: int, messages: int) -> range:
        """The numbers of the messages of a producer that sends so many."""
        return range(first_number(producer), first_number(producer) + messages)

    def blocks(self, producer: int, messages: int) -> list[Block]:
        """The blocks that hold so many messages of a producer, a whole number of them."""
        made, size = self._blocks[producer], self.scenario.block
        for first in self.numbers(producer, messages)[len(made) * size :: size]:
            made.append(Block(self._data(range(first, first + size)), size))
        found = made[: messages // size]
        return split_anywhere(found) if self.scenario.splits else found

    def _data(self, numbers: range) -> bytes:
        """Frames of these messages, as transactions if the scenario has any."""
        size = self.scenario.transaction
        if not size:
            return b"".join([self._send(number, self._headers(number)) for number in numbers])
        parts = []
        for first in numbers[::size]:
            name = {"transaction": f"tx-{first}"}
            parts.append(frame("BEGIN", name))
            parts += [self._send(number, self._headers(number) | name) for number in range(first, first + size)]
            parts.append(frame("COMMIT", {**name, "receipt": first}))
        return b"".join(parts)

    def _headers(self, number: int) -> Headers:
        """Headers of STOMP that message `number` has."""
        found: Headers = {"destination": self.scenario.route.destination(number)}
        if self.scenario.persistent:
            found["persistent"] = "true"
            if not self.scenario.transaction:
                found["receipt"] = number
        return found

    def _send(self, number: int, headers: Headers) -> bytes:
        kind, route = self.scenario.kind, self.scenario.route
        body = kind.body(number)
        return frame(
            "SEND",
            {**headers, **kind.headers(number), **route.properties(number), "content-length": len(body)},
            body,
        )


def split_anywhere(blocks: Sequence[Block]) -> list[Block]:
    """The same bytes in as many writes, of which each but the last leaves a part of its last frame to the next."""
    chance, held, found = random.Random(len(blocks)), b"", []
    for each in blocks[:-1]:
        data = held + each.data
        last = len(each.data) - each.data.rindex(b"\0", 0, -1) - 1
        cut = len(data) - chance.randint(1, last - 1)
        found.append(Block(data[:cut], each.messages))
        held = data[cut:]
    return [*found, Block(held + blocks[-1].data, blocks[-1].messages)]
