"""Tell listeners of changes made on the command line, for the audit log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from brokerapp.model import JsonValue


@dataclass(slots=True)
class CliOperation:
    """Operation that changes something. `error` is why it failed, or None."""

    verb: str
    object: str
    before: JsonValue = None  #: state of its object, as JSON
    after: JsonValue = None  #: state afterwards, with the result
    error: Exception | None = None


#: Called before each change of this installation's broker: who records it may now load what that needs.
before_operation: list[Callable[[], None]] = []
#: Called with each such change after it was tried.
after_operation: list[Callable[[CliOperation], None]] = []


@contextmanager
def reporting(verb: str, object: str) -> Iterator[CliOperation]:
    """Tell the listeners of an operation around a block, whether it succeeds or not."""
    operation = CliOperation(verb, object)
    for listener in before_operation:
        listener()
    try:
        yield operation
    except Exception as error:
        operation.error = error
        raise
    finally:
        for tell in after_operation:
            tell(operation)
