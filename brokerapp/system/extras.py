"""Know which extras of the package are installed: parts whose dependencies not every installation needs."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from brokerapp.errors import RequestRefused

CONSOLE, ANALYTICS = "console", "analytics"
#: A package that each extra brings, and nothing else of Sluice.
_PACKAGES = {CONSOLE: "django", ANALYTICS: "pyspark"}


@cache
def is_installed(extra: str) -> bool:
    """Return whether an extra is installed; nothing is imported to find out."""
    return find_spec(_PACKAGES[extra]) is not None


def missing(extra: str, what: str) -> str:
    """Return the sentence that something needs an extra which is not installed, with the command that installs it."""
    return f"{what} the extra {extra!r}, which is not installed: pip install 'sluice[{extra}]'"


def require(extra: str, what: str) -> None:
    """Raise RequestRefused where an extra is not installed. `what` begins the sentence, such as `analyses need`."""
    if not is_installed(extra):
        raise RequestRefused(missing(extra, what))
