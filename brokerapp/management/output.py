"""What commands write: lines on standard output, and errors in one form."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO

from brokerapp.errors import BrokerError


def write_line(output: TextIO, text: str) -> None:
    """Write text as a line, at once."""
    output.write(text if text.endswith("\n") else f"{text}\n")
    output.flush()


def write_error(error: object) -> None:
    """Write an error as the one line that each command writes of one."""
    write_line(sys.stderr, f"error: {error}")


def exit_status(run: Callable[[], None]) -> int:
    """Run a command and return its exit status: 0, or 1 with the reason on standard error."""
    try:
        run()
    except (BrokerError, OSError) as error:
        write_error(error)
        return 1
    return 0
