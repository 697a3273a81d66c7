"""Fixtures of the console, for tests of its security."""

from tests.console.conftest import admin, browser_of, console, console_without_store, db, fast_startup  # noqa: F401
