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
        "messages are always kept in the broker's store",
    ),
    **dict.fromkeys(
        ("useJmx", "enableStatistics", "populateUserNameInMBeans", "mbeanInvocationTimeout", "brokerObjectName"),
        "JMX is replaced by the console and the Jolokia endpoint",
    ),
    **dict.fromkeys(
        ("persistenceThreadPriority", "taskRunnerPriority", "dedicatedTaskRunner", "useShutdownHook", "vmConnectorURI",
         "systemExitOnShutdown", "systemExitOnShutdownExitCode", "useLoggingForShutdownErrors", "restartAllowed"),
        "configures the Java VM, which does not exist here",
    ),
    **dict.fromkeys(
        ("passiveSlave", "shutdownOnMasterFailure", "shutdownOnSlaveFailure", "waitForSlave", "waitForSlaveTimeout"),
        "master and slave are replaced by nodes that share one store",
    ),
    **dict.fromkeys(
        ("cacheTempDestinations", "timeBeforePurgeTempDestinations", "allowTempAutoCreationOnSend"),
        "temporary destinations exist as long as their connection",
    ),
    **dict.fromkeys(
        ("adjustUsageLimits", "splitSystemUsageForProducersConsumers", "producerSystemUsagePortion",
         "consumerSystemUsagePortion", "schedulePeriodForDiskUsageCheck", "diskUsageCheckRegrowThreshold"),
        "limits apply to the bytes of all messages together",
    ),
    **dict.fromkeys(("start", "startAsync"), "the broker is started by runbroker or the console"),
    "enableMessageExpirationOnActiveDurableSubs": "messages always expire, whether the subscription is online or not",
    "brokerId": "each start of a node generates its own id",
    "anonymousProducerAdvisorySupport": "producer advisories are published per destination",
    "monitorConnectionSplits": "the vm transport is not supported",
    "rollbackOnlyOnAsyncException": "transactions are always atomic",
    "useLocalHostBrokerName": "the broker name is taken from the configuration",
}  # fmt: skip

#: Elements of the broker that have no effect here and will have none, and why.
IGNORED_ELEMENTS = {
    **dict.fromkeys(
        ("persistenceFactory", "tempDataStore", "jobSchedulerStore"),
        "messages are always kept in the broker's store",
    ),
    **dict.fromkeys(("managementContext", "adminView"), "JMX is replaced by the console and the Jolokia endpoint"),
    **dict.fromkeys(
        ("persistenceTaskRunnerFactory", "taskRunnerFactory", "shutdownHooks", "services", "brokerContext",
         "ioExceptionHandler", "destinationFactory", "regionBroker"),
        "configures the Java VM, which does not exist here",
    ),
    **dict.fromkeys(
        ("producerSystemUsage", "consumerSystemUsage"), "limits apply to the bytes of all messages together"
    ),
    "jmsBridgeConnectors": "bridges to other JMS providers are not supported",
    "proxyConnectors": "proxy connectors are not supported",
}  # fmt: skip

#: Why a policy's memoryLimit does nothing at a queue.
MEMORY_LIMIT_OF_QUEUE = (
    "imported without effect: as in ActiveMQ, it limits only queues with vmQueueCursor; the backlog of others is in "
    "the store, which storeLimit (urn:sluice) limits"
)
#: Options of a policyEntry that have no effect here and will have none, and why.
_IGNORED_OPTIONS = {
    "gcWithNetworkConsumers": "policies do not affect bridges",
    "optimizedDispatch": "dispatch uses no threads here",
}
_KEPT = "imported unchanged, without effect"


def option_remark(name: str) -> str | None:
    """Return why an option of a policyEntry has no effect; None if it has one."""
    if name in DEFAULT_BEHAVIOR_OPTIONS:
        return None
    return _IGNORED_OPTIONS.get(name, _KEPT)


def plugin_remark(name: str) -> str | None:
    """Return why a plugin has no effect; None if it has one."""
    return None if name in SUPPORTED_PLUGINS else _KEPT
