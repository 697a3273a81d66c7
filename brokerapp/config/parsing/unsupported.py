"""Lists options, attributes and elements without effect here, each with the reason for the import report."""

from __future__ import annotations

#: Options of a policyEntry that ask for what a queue does anyway: they set up how ActiveMQ pages its messages.
DEFAULT_BEHAVIOR_OPTIONS = frozenset({
    "cursorMemoryHighWaterMark", "doOptimzeMessageStorage", "lazyDispatch", "maxBrowsePageSize", "maxPageSize",
    "optimizeMessageStoreInFlightLimit", "reduceMemoryFootprint", "useCache", "usePrefetchExtension",
})  # fmt: skip
#: Plugins that do what they say.
SUPPORTED_PLUGINS = frozenset({
    "runtimeConfigurationPlugin", "statisticsBrokerPlugin",
})  # fmt: skip
#: Attributes of the broker that have no effect here and will have none, and why.
IGNORED_ATTRIBUTES = {
    **dict.fromkeys(
        ("dataDirectory", "dataDirectoryFile", "tmpDataDirectory", "schedulerDirectory", "schedulerDirectoryFile",
         "storeOpenWireVersion"),
        "messages are kept in the store, wherever that is",
    ),
    **dict.fromkeys(
        ("useJmx", "enableStatistics", "populateUserNameInMBeans", "mbeanInvocationTimeout", "brokerObjectName"),
        "the console shows what JMX showed",
    ),
    **dict.fromkeys(
        ("persistenceThreadPriority", "taskRunnerPriority", "dedicatedTaskRunner", "useShutdownHook", "vmConnectorURI",
         "systemExitOnShutdown", "systemExitOnShutdownExitCode", "useLoggingForShutdownErrors", "restartAllowed"),
        "there is no Java machine to set up",
    ),
    **dict.fromkeys(
        ("passiveSlave", "shutdownOnMasterFailure", "shutdownOnSlaveFailure", "waitForSlave", "waitForSlaveTimeout"),
        "there are no masters and slaves: nodes on one store replace each other",
    ),
    **dict.fromkeys(
        ("cacheTempDestinations", "timeBeforePurgeTempDestinations", "allowTempAutoCreationOnSend"),
        "temporary destinations are there as long as their connection",
    ),
    **dict.fromkeys(
        ("adjustUsageLimits", "splitSystemUsageForProducersConsumers", "producerSystemUsagePortion",
         "consumerSystemUsagePortion", "schedulePeriodForDiskUsageCheck", "diskUsageCheckRegrowThreshold"),
        "limits are bytes of messages, for all together",
    ),
    **dict.fromkeys(("start", "startAsync"), "it starts when it is told to"),
    "enableMessageExpirationOnActiveDurableSubs": "what is late expires, whether its subscription has consumers or not",
    "brokerId": "each run of a node has an id of its own",
    "anonymousProducerAdvisorySupport": "producers are told of by the destinations they send to",
    "monitorConnectionSplits": "there are no connections between threads of one machine",
    "rollbackOnlyOnAsyncException": "a transaction is one unit: all of it happens, or nothing",
    "useLocalHostBrokerName": "the name is the one given",
}  # fmt: skip

#: Elements of the broker that have no effect here and will have none, and why.
IGNORED_ELEMENTS = {
    **dict.fromkeys(
        ("persistenceFactory", "tempDataStore", "jobSchedulerStore"),
        "messages are kept in the store, wherever that is",
    ),
    **dict.fromkeys(("managementContext", "adminView"), "the console shows what JMX showed"),
    **dict.fromkeys(
        ("persistenceTaskRunnerFactory", "taskRunnerFactory", "shutdownHooks", "services", "brokerContext",
         "ioExceptionHandler", "destinationFactory", "regionBroker"),
        "there is no Java machine to set up",
    ),
    **dict.fromkeys(("producerSystemUsage", "consumerSystemUsage"), "limits are bytes of messages, for all together"),
    "jmsBridgeConnectors": "there are no bridges to other JMS providers",
    "proxyConnectors": "there is no proxy",
}  # fmt: skip

#: Why a policy's memoryLimit does nothing at a queue.
MEMORY_LIMIT_OF_QUEUE = (
    "kept in the policy, without effect: as in ActiveMQ it bounds a queue with vmQueueCursor only; others have their "
    "backlog in the store, which storeLimit (urn:sluice) bounds"
)
#: Options of a policyEntry that have no effect here and will have none, and why.
_IGNORED_OPTIONS = {
    "gcWithNetworkConsumers": "bridges pass messages on without regard to policies so far",
    "optimizedDispatch": "it spares a thread of ActiveMQ's, and messages are dispatched without threads here",
}
_KEPT = "kept as it is written, without effect yet"


def option_remark(name: str) -> str | None:
    """Why an option of a policyEntry does nothing; None when it acts."""
    if name in DEFAULT_BEHAVIOR_OPTIONS:
        return None
    return _IGNORED_OPTIONS.get(name, _KEPT)


def plugin_remark(name: str) -> str | None:
    """Why a plugin does nothing; None when it acts."""
    return None if name in SUPPORTED_PLUGINS else _KEPT
