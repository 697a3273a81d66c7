"""Test that nodes that change connectors at the same time lose no change."""

import json

from brokerapp.network.connectors.connector_store import NetworkConnectorStore
from brokerapp.network.options.definition import NetworkConnector


class Store:
    """One store of two nodes, of which the second acts between a read and a write of the first."""

    def __init__(self):
        self.text, self.meanwhile = "", None

    async def read(self):
        return self.text

    async def replace(self, former, text):
        if (meanwhile := self.meanwhile) is not None:
            self.meanwhile = None
            await meanwhile()
        if former != self.text:
            return False
        self.text = text
        return True


def connector(name):
    return NetworkConnector(name, "tcp://127.0.0.1:1")


async def test_what_a_node_imposes_stays_when_another_one_writes_at_that_moment():
    store = Store()
    one, other = NetworkConnectorStore(store), NetworkConnectorStore(store)
    await one.initialize([connector("old"), connector("older")], impose=True, first=True)
    await one.initialize([connector("old")], impose=True, first=False)
    assert await one.removed_names() == ["older"]
    store.meanwhile = lambda: other.initialize([connector("new")], impose=True, first=False)
    await one.clear_removed(["older"])
    assert [each.name for each in (await one.load())[0]] == ["new"]
    assert await one.removed_names() == ["old"]  # that one is still to be done
    store.meanwhile = lambda: other.clear_removed(["old"])
    await one.save([connector("new")], {"new": False}, "new")
    kept = json.loads(store.text)
    assert (kept["running"], kept["gone"]) == ({"new": False}, [])
