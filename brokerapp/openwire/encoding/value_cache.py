"""The caches of values of one connection: what was sent or received is named by its number afterwards.

Only the sender decides what has which number. One direction has one cache, in any encoding.
"""

from __future__ import annotations

from typing import Any

from brokerapp.errors import OpenWireError

#: How many values have numbers at a time, as in ActiveMQ, which does not ask its peer.
CACHE_SIZE = 16383
#: So many numbers are free when a command is encoded: it holds fewer values.
FREE_NUMBERS = 100
#: What the values that one peer had remembered may take together, bytes as they came.
MAX_RECEIVED_BYTES = 16 * 1024 * 1024
#: Combinations of values that are remembered as found for the fields of a command.
MAX_FOUND = 1024
#: Instead of a number: the value has none.
NO_NUMBER = 0xFFFF
_NOTHING = object()

#: Of fields with values that may have numbers: which types these may be of, and the name of the field.
Fields = tuple[tuple[tuple[int, ...], str], ...]


class SentValues:
    """The numbers of what was sent; the oldest are given up for new values."""

    __slots__ = ("_added", "_next", "_numbers", "_numbers_by_identity", "_oldest", "_values")

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        #: The same by `id`, of what is in `_values`: to find a value by its fields takes ten times as long.
        self._numbers_by_identity: dict[int, int] = {}
        self._values: list[Any] = [_NOTHING] * CACHE_SIZE
        self._next = self._oldest = 0
        #: The numbers given since the last call of begin.
        self._added: list[int] = []

    def begin(self) -> None:
        """Free the numbers that were given first, until there are enough for a command that is encoded now."""
        self._added.clear()
        while len(self._numbers) > CACHE_SIZE - FREE_NUMBERS:
            self._remove(self._oldest)
            self._oldest = (self._oldest + 1) % CACHE_SIZE

    @property
    def has_added(self) -> bool:
        """Return whether anything was given a number since then."""
        return bool(self._added)

    def take_back(self) -> None:
        """Forget what was given a number since then: the command is not sent."""
        for number in self._added:
            self._remove(number)

    def number(self, value: object) -> int | None:
        """Return the number of a value; None where it has none."""
        number = self._numbers_by_identity.get(id(value))
        return self._numbers.get(value) if number is None else number

    def add(self, value: object) -> int:
        """Return a number for a value that has none yet, NO_NUMBER where no number is free."""
        number = self._next
        self._next = (number + 1) % CACHE_SIZE
        if len(self._numbers) >= CACHE_SIZE:
            return NO_NUMBER
        self._values[number] = value
        self._numbers[value] = self._numbers_by_identity[id(value)] = number
        self._added.append(number)
        return number

    def _remove(self, number: int) -> None:
        value = self._values[number]
        self._numbers.pop(value, None)
        self._numbers_by_identity.pop(id(value), None)
        self._values[number] = _NOTHING


class ReceivedValues:
    """What the peer sent, by its numbers."""

    __slots__ = ("_bytes", "_found", "_values")

    def __init__(self) -> None:
        self._values: dict[int, tuple[Any, int]] = {}
        #: What `all_of` returned, until anything is put.
        self._found: dict[tuple[object, tuple[int, ...]], tuple[Any, ...]] = {}
        self._bytes = 0

    def put(self, number: int, value: object, size: int) -> None:
        """Remember a value that took so many bytes. Raises OpenWireError for more than may be remembered."""
        if number == NO_NUMBER:
            return
        if number >= CACHE_SIZE:
            raise OpenWireError(f"a value has the number {number}: less than {CACHE_SIZE} is allowed")
        _, before = self._values.get(number, (None, 0))
        self._bytes += size - before
        if self._bytes > MAX_RECEIVED_BYTES:
            raise OpenWireError(f"values to be remembered exceed {MAX_RECEIVED_BYTES} bytes")
        self._values[number] = value, size
        self._found.clear()

    def get(self, number: int, types: tuple[int, ...], field: str) -> Any:
        """Return the value with a number, for a field of these types. Raises OpenWireError where it cannot be that."""
        if number not in self._values:
            raise OpenWireError(f"field {field} holds the value number {number}, which was not sent before")
        value, _ = self._values[number]
        if value is not None and value.data_type not in types:
            raise OpenWireError(f"field {field} holds the value number {number}, which it cannot: {value}")
        return value

    def all_of(self, shape: object, numbers: tuple[int, ...], fields: Fields) -> tuple[Any, ...]:
        """Return the values with these numbers, for the fields of commands of a shape. Raises as `get` does."""
        key = shape, numbers
        found = self._found.get(key)
        if found is None:
            found = tuple([self.get(number, *field) for number, field in zip(numbers, fields, strict=True)])
            if len(self._found) >= MAX_FOUND:
                self._found.clear()
            self._found[key] = found
        return found
