"""Parse SLUICE_MAIL: smtp://user:password@host:587?tls=1, or smtps:// for TLS from the start."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from brokerapp.errors import ConfigurationRefused
from brokerapp.system.secret_variables import with_secrets

PLAIN, SECURE = "smtp", "smtps"
_PORTS = {PLAIN: 25, SECURE: 465}
_FORM = "smtp://user:password@host:587?tls=1, or smtps:// for TLS from the start"


@dataclass(frozen=True, slots=True)
class MailServer:
    """Hold the address of the mail server; without a host emails are written to files."""

    host: str = ""
    port: int = 0
    user: str = ""
    password: str = field(default="", repr=False)
    is_secure: bool = False  #: TLS from the start
    becomes_secure: bool = False  #: TLS once both have said hello

    @staticmethod
    def read(variables: Mapping[str, str] = os.environ) -> MailServer:
        """Return the settings of these variables. Raises ConfigurationRefused, without the password."""
        text = with_secrets(variables).get("SLUICE_MAIL", "")
        if not text:
            return MailServer()
        try:
            found = urlsplit(text)
            host, port = found.hostname, found.port
        except ValueError:
            host, port = None, None
        if not host or found.scheme not in _PORTS:
            raise ConfigurationRefused(f"SLUICE_MAIL is not the URL of a mail server. Expected: {_FORM}")
        is_secure = found.scheme == SECURE
        return MailServer(
            host=host,
            port=port or _PORTS[found.scheme],
            user=unquote(found.username or ""),
            password=unquote(found.password or ""),
            is_secure=is_secure,
            becomes_secure=not is_secure and parse_qs(found.query).get("tls") == ["1"],
        )
