"""Who an authenticated client is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Principal:
    """A client that has logged in, with the groups it is in."""

    name: str
    groups: frozenset[str] = frozenset()


#: A client of a broker that asks for no login.
ANONYMOUS = Principal("anonymous", frozenset({"anonymous"}))
