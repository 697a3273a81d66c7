"""Fixtures of the tests of shards."""

from __future__ import annotations

import itertools

import pytest

_numbers = itertools.count(1)


@pytest.fixture
def name(request) -> str:
    """Return a prefix for the queues of this test alone."""
    return f"{request.node.originalname}.{next(_numbers)}".removeprefix("test_")
