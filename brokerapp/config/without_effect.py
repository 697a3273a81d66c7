"""What a file may ask for and the node does not do yet: the reader reports it, with the line, when it reads it."""

from __future__ import annotations

#: Options of a policyEntry that ask for what a queue does anyway: they set up how ActiveMQ pages its messages.
MET_OPTIONS = frozenset({
    "cursorMemoryHighWaterMark", "doOptimzeMessageStorage", "lazyDispatch", "maxBrowsePageSize", "maxPageSize",
    "optimizeMessageStoreInFlightLimit", "optimizedDispatch", "pendingQueuePolicy", "reduceMemoryFootprint", "useCache",
    "usePrefetchExtension",
})  # fmt: skip
#: Plugins that do what they say.
ACTING_PLUGINS = frozenset({"virtualSelectorCacheBrokerPlugin", "statisticsBrokerPlugin", "runtimeConfigurationPlugin"})
#: Attributes of the broker, by their values that would ask for something.
BROKER_FLAGS = {
    "persistent": (False, "messages are stored all the same"),
    "use_virtual_dest_subs": (True, "networks of brokers are not served yet"),
}

#: Why a policy's memoryLimit does nothing at topics.
MEMORY_LIMIT_OF_TOPIC = "what waits for the subscribers of a topic is bounded for each of them"
#: Why a network connector does nothing.
NETWORKS = "networks of brokers are not served yet"
_KEPT = "kept as it is written, without effect yet"


def why_flag(field: str, value: object) -> str | None:
    """Why an attribute of the broker with this value does nothing; None when it acts, or asks for nothing."""
    idle, why = BROKER_FLAGS.get(field, (None, None))
    return why if value == idle else None


def why_option(name: str) -> str | None:
    """Why an option of a policyEntry does nothing; None when it acts."""
    return None if name in MET_OPTIONS else _KEPT


def why_plugin(name: str) -> str | None:
    """Why a plugin does nothing; None when it acts."""
    return None if name in ACTING_PLUGINS else _KEPT
