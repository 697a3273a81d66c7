"""Fixtures of the tests of backups: one that several tests restore, damage, or only read."""

from __future__ import annotations

import pytest

from tests.backup.restored_broker import PASSPHRASE, BrokerInFolder, backup
from tests.protocol.clients import StompClient

CONNECTOR = """<networkConnectors>
    <networkConnector name="to-east" uri="static:(tcp://127.0.0.1:9)" userName="u" password="secret of the bridge"/>
  </networkConnectors>"""


@pytest.fixture(scope="session")
def passphrase_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("passphrase") / "passphrase"
    path.write_text(f"{PASSPHRASE}\n")
    return path


@pytest.fixture(scope="session")
def original(tmp_path_factory):
    """Run a broker with 50 messages in the queue `orders` and a network connector."""
    broker = BrokerInFolder(tmp_path_factory.mktemp("original"), "original", more=CONNECTOR)
    broker.start()
    client = StompClient(broker.port)
    for number in range(50):
        client.send("/queue/orders", f"order {number}", persistent="true")
    client.connection.disconnect()
    yield broker
    broker.kill()


@pytest.fixture(scope="session")
def encrypted(original, passphrase_file, tmp_path_factory):
    """Return a backup of that broker with a passphrase."""
    file = tmp_path_factory.mktemp("encrypted") / "orders.backup"
    assert backup(file, "--data", original.data, "--config", original.config, "--passphrase-file", passphrase_file) == 0
    return file


@pytest.fixture(scope="session")
def plain(original, tmp_path_factory):
    """Return a backup of that broker without a passphrase."""
    file = tmp_path_factory.mktemp("plain") / "orders.backup"
    assert backup(file, "--data", original.data) == 0
    return file
