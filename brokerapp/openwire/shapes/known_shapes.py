"""KnownShapes: remembers how often commands of a shape came, and compiles a function for those that come often.

The commands of one application have few shapes: the same fields are there and the same values were sent before, so
that their truth values, which come first in the tight encoding, are equal bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

#: Commands of a shape after which a function is compiled for it. That takes half a millisecond, as long as the function
#: saves with some hundred commands: whatever a client sends, shapes at most double what its commands cost.
COMMANDS_TO_COMPILE = 100
#: Shapes with a function, and others that are counted, of all connections together: a client decides what it sends.
MAX_SHAPES = MAX_COUNTED = 256
#: The longest shape, bytes: from here on the number of those of the truth values takes more than one.
MAX_SHAPE_BYTES = 64

Function = TypeVar("Function", bound=Callable[..., Any])


class Unsuitable(Exception):
    """No function can be compiled for commands of this shape."""


class KnownShapes(Generic[Function]):
    """Functions by shapes. They return None for a command that is of another shape after all."""

    __slots__ = ("_counts", "functions")

    def __init__(self) -> None:
        self.functions: dict[Hashable, Function] = {}
        self._counts: dict[Hashable, int] = {}

    def note(self, shape: Hashable, compile_function: Callable[[], Function]) -> Function | None:
        """Count a command of a shape without a function; return the function if it is compiled now."""
        count = self._counts.get(shape, 0) + 1
        if count == COMMANDS_TO_COMPILE and len(self.functions) < MAX_SHAPES:
            try:
                function = self.functions[shape] = compile_function()
            except Unsuitable:
                pass
            else:
                return function
        if len(self._counts) >= MAX_COUNTED and shape not in self._counts:
            self._counts.clear()
        self._counts[shape] = count
        return None
