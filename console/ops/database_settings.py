"""Build Django's database settings from a URL."""

from __future__ import annotations

from typing import Any

import dj_database_url


def databases(url: str) -> dict[str, Any]:
    """Return Django's DATABASES for this URL."""
    default = dj_database_url.parse(url, conn_max_age=0)
    if default["ENGINE"].endswith("sqlite3"):
        # Several processes write: readers never wait with a write-ahead log, writers wait for each other.
        default["OPTIONS"] = {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        }
    return {"default": default}
