"""Builds a function from lines of source text and the constants in them."""

from __future__ import annotations

from typing import Any


class Source:
    """The lines of one function, and the names that they use."""

    def __init__(self, head: str, names: dict[str, Any]) -> None:
        self._lines, self._names = [head], names

    def add(self, line: str) -> None:
        """Append a line of the body."""
        self._lines.append(f"    {line}")

    def constant(self, value: object) -> str:
        """Return the expression for a value: itself, or a name that stands for it."""
        if value is None or isinstance(value, bool | int | str | bytes):
            return repr(value)
        name = f"k{len(self._names)}"
        self._names[name] = value
        return name

    def compile(self) -> Any:
        """Return the function."""
        before = set(self._names)
        exec(compile("\n".join(self._lines), f"<{self._lines[0]}>", "exec"), self._names)
        (name,) = set(self._names) - before - {"__builtins__"}
        return self._names[name]
