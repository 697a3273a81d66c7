"""Replaces `${name}` and `${name:default}` in a configuration file."""

from __future__ import annotations

import re
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\$\{([^${}:]+)(?::([^${}]*))?\}")


def variable_of(name: str) -> str:
    """Return the environment variable of a placeholder: MAIL_HOST for `mail.host`."""
    return name.upper().replace(".", "_").replace("-", "_")


def resolve(text: str, properties: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return the text with placeholders replaced, and the names of those without a value, which stay.

    A name is looked up as it is, then in the form of an environment variable: `activemq.data`, then `ACTIVEMQ_DATA`.
    """
    missing: list[str] = []

    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        found = properties.get(name, properties.get(variable_of(name), default))
        if found is None:
            missing.append(name)
            return match[0]
        return found

    return _PLACEHOLDER.sub(value, text), tuple(missing)
