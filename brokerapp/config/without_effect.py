"""What a configuration asks for and the node does not do yet, said at the start rather than dropped in silence."""

from __future__ import annotations

from collections.abc import Iterator

from brokerapp.config.broker_config import BrokerConfig
from brokerapp.definitions import PolicyEntry
from brokerapp.destination import Kind

#: Options of a policyEntry that ask for what a queue does anyway: they set up how ActiveMQ pages its messages.
MET_OPTIONS = frozenset({
    "cursorMemoryHighWaterMark", "doOptimzeMessageStorage", "lazyDispatch", "maxBrowsePageSize", "maxPageSize",
    "optimizeMessageStoreInFlightLimit", "optimizedDispatch", "pendingQueuePolicy", "reduceMemoryFootprint", "useCache",
    "usePrefetchExtension",
})  # fmt: skip
#: Plugins that do what they say.
ACTING_PLUGINS = frozenset({"virtualSelectorCacheBrokerPlugin", "timeStampingBrokerPlugin"})
#: Attributes of the broker, by their values that would ask for something.
BROKER_FLAGS = {
    "persistent": (False, 'persistent="false": messages are stored all the same'),
    "use_virtual_dest_subs": (True, "useVirtualDestSubs: networks of brokers are not served yet"),
}


def without_effect(config: BrokerConfig) -> Iterator[str]:
    """One sentence for each thing the file asks for that has no effect."""
    for field, (value, sentence) in BROKER_FLAGS.items():
        if getattr(config, field) == value:
            yield sentence
    for connector in config.network_connectors:
        yield f"networkConnector {connector.name!r} to {connector.uri}: networks of brokers are not served yet"
    for plugin in config.plugins:
        if plugin.name in ACTING_PLUGINS:
            continue
        yield f"plugin {plugin.name}: has no effect yet"
    for policy in config.definitions.policies:
        yield from _of_policy(policy)


def _of_policy(policy: PolicyEntry) -> Iterator[str]:
    idle = sorted({name for name, _ in policy.options} - MET_OPTIONS)
    if policy.memory_limit and policy.destination.kind is Kind.TOPIC:
        idle.insert(0, "memoryLimit (of a topic: what waits for its subscribers is bounded for each of them)")
    if idle:
        yield f"policyEntry {policy.destination}: no effect yet: {', '.join(idle)}"
