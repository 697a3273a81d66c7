"""Test that of nodes that start or reload their file at the same time one stores the definitions."""

import asyncio

from brokerapp.model.definitions import CompositeDestination, Definitions, ForwardTarget
from brokerapp.model.destination import Destination
from brokerapp.runtime.definition_sync import DefinitionSync

CONFIGURED = Definitions(
    virtual_destinations=(CompositeDestination(Destination.queue("in"), (ForwardTarget(Destination.queue("out")),)),)
)


async def test_nodes_that_begin_at_once_have_the_same_definitions_and_one_version(store):
    found = await asyncio.gather(
        *(DefinitionSync(store.definitions).load_or_define(CONFIGURED, impose=True) for _ in range(5))
    )
    assert {each.version for each in found} == {1}
    assert {each.virtual_destinations for each in found} == {CONFIGURED.virtual_destinations}


async def test_nodes_whose_file_changes_at_once_make_one_version_of_it(store):
    await DefinitionSync(store.definitions).load_or_define(Definitions(), impose=True)
    found = await asyncio.gather(*(DefinitionSync(store.definitions).impose(CONFIGURED, "file") for _ in range(5)))
    assert sum(changed for _, changed in found) == 1
    assert (await DefinitionSync(store.definitions).impose(CONFIGURED, "file")) == (2, False)
