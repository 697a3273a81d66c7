"""Signals about operations on the command line, for the audit log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.dispatch import Signal

from brokerapp.model import JsonValue

#: Sent before each such change: whoever records may get ready.
operating = Signal()
#: Sent with `operation`, after each change that was tried on this installation's broker.
operated = Signal()


@dataclass(slots=True)
class CliOperation:
    """Operation that changes something. `error` is why it failed, or None."""

    verb: str
    object: str
    before: JsonValue = None  #: state of its object, as JSON
    after: JsonValue = None  #: state afterwards, with the result
    error: Exception | None = None


@contextmanager
def reporting(verb: str, object: str) -> Iterator[CliOperation]:
    """Send the signals of an operation around a block, whether it succeeds or not."""
    operation = CliOperation(verb, object)
    operating.send(CliOperation)
    try:
        yield operation
    except Exception as error:
        operation.error = error
        raise
    finally:
        operated.send(CliOperation, operation=operation)
