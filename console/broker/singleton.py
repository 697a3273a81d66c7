"""Create objects that all requests of a process share, when they are first needed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """Something that runs until it is closed."""

    def close(self) -> None: ...


T = TypeVar("T", bound=Closable)


class ProcessSingleton(Generic[T]):
    """One for the whole process. `make` makes it; by whatever thread it is asked, it is made once."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make, self._made = make, None
        self._lock = threading.Lock()

    def get(self) -> T:
        """It, made with the first call."""
        if self._made is None:
            with self._lock:
                if self._made is None:
                    self._made = self._make()
        return self._made

    def close(self) -> None:
        """Close it, if it was made; the next call makes another one."""
        with self._lock:
            made, self._made = self._made, None
            if made is not None:
                made.close()
