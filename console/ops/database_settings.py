"""Build Django's database settings from a URL."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

import dj_database_url

from brokerapp.errors import ConfigurationRefused
from brokerapp.system.store_address import without_password

_EXPECTED = "expected sqlite:///PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE"


def databases(url: str) -> dict[str, Any]:
    """Return Django's DATABASES for this URL, whose driver is installed. Raises ConfigurationRefused."""
    default = parse_database(url)
    if default["ENGINE"].endswith("postgresql") and not (find_spec("psycopg") or find_spec("psycopg2")):
        raise ConfigurationRefused(
            "DATABASE_URL: PostgreSQL needs a driver, which is not installed: "
            f'{sys.executable} -m pip install "psycopg[binary]"'
        )
    return {"default": default}


def parse_database(url: str) -> dict[str, Any]:
    """Return the settings of a database. Raises ConfigurationRefused."""
    try:
        default = dj_database_url.parse(url, conn_max_age=0)
    except ValueError as error:  # of an unknown scheme, too
        raise ConfigurationRefused(f"DATABASE_URL={without_password(url)}: {_EXPECTED}") from error
    if not default.get("ENGINE", "").endswith(("sqlite3", "postgresql")):
        raise ConfigurationRefused(f"DATABASE_URL={without_password(url)}: {_EXPECTED}")
    if default["ENGINE"].endswith("sqlite3"):
        # Several processes write: readers never wait with a write-ahead log, writers wait for each other.
        default["OPTIONS"] = {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        }
    return default
