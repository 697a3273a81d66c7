"""Fixtures of one broker process a module, which its tests kill and restart."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.processes import BrokerProcess

#: Small enough to be filled in a moment, large enough for the loads.
STORE_LIMIT_MB = 24
LIMITED = f"""\
<systemUsage><systemUsage sendFailIfNoSpace="true">
  <storeUsage><storeUsage limit="{STORE_LIMIT_MB} mb"/></storeUsage>
</systemUsage></systemUsage>"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory) -> Iterator[BrokerProcess]:
    """A process that runs whenever a test begins."""
    process = BrokerProcess(tmp_path_factory.mktemp("broker"), LIMITED)
    try:
        process.start()
        yield process
    finally:
        process.end()
