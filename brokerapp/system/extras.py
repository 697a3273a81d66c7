"""Know which extras of the package are installed: parts whose dependencies not every installation needs."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.util import find_spec

from brokerapp.errors import RequestRefused
from brokerapp.version import VERSION

CONSOLE, ANALYTICS = "console", "analytics"
#: A package that each extra brings, and nothing else of Sluice.
_PACKAGES = {CONSOLE: "django", ANALYTICS: "pyspark"}


#: The file that `make wheel` makes; its last part names the kind of machine.
WHEEL = f"sluice-{VERSION}-cp311-cp311-linux_{os.uname().machine}.whl"


@cache
def is_installed(extra: str) -> bool:
    """Return whether an extra is installed; nothing is imported to find out."""
    return find_spec(_PACKAGES[extra]) is not None


def wheel_with(extra: str) -> str:
    """Return the file of Sluice's wheel with an extra, as pip takes it."""
    return f"{WHEEL}[{extra}]"


def installation_command(extra: str) -> str:
    """Return the command that installs an extra from Sluice's wheel, into the environment of this Python.

    It names the file: a package called `sluice` in an index is another program.
    """
    return f"{sys.executable} -m pip install '{wheel_with(extra)}'"


def missing(extra: str, what: str) -> str:
    """Return the sentence that something needs an extra which is not installed, with the command that installs it."""
    command = installation_command(extra)
    return f"{what} the extra {extra!r}, which is not installed. Install it from Sluice's wheel: {command}"


def require(extra: str, what: str) -> None:
    """Raise RequestRefused where an extra is not installed. `what` begins the sentence, such as `analyses need`."""
    if not is_installed(extra):
        raise RequestRefused(missing(extra, what))
