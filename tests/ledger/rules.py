"""The configuration of the load, and the same rules in plain Python."""

from __future__ import annotations

from collections.abc import Callable

BROKER = "ledger"
#: Why something is gone that was removed or purged.
REASON = "removed by an operator"
DLQ = "queue://ActiveMQ.DLQ"
VIRTUAL = "topic://VirtualTopic.orders"
CONSUMER_QUEUES = [f"queue://Consumer.{each}.VirtualTopic.orders" for each in ("billing", "shipping", "audit")]
COMPOSITE = "queue://orders.in"
#: Its legs, with what their selectors say in Python.
LEGS: dict[str, tuple[str, Callable[[dict[str, str]], bool]]] = {
    "queue://orders.eu": ("region = 'eu'", lambda order: order["region"] == "eu"),
    "queue://orders.large": ("amount &gt; 500", lambda order: int(order["amount"]) > 500),
    "queue://orders.moon": ("region = 'moon'", lambda order: False),
}
PRICES = "topic://prices"
DURABLES = ["subscription://ledger-desk:prices", "subscription://ledger-absent:prices"]

_FILTERED = "".join(
    f'<filteredDestination queue="{to.removeprefix("queue://")}" selector="{selector}"/>'
    for to, (selector, _) in LEGS.items()
)
#: The draft of a what-if: other legs of the composite queue, and a copy of what is sent to another queue.
DRAFT: dict[str, tuple[str, Callable[[dict[str, str]], bool]]] = {
    "queue://orders.eu": ("region IN ('eu', 'us')", lambda order: order["region"] in ("eu", "us")),
    "queue://orders.apac": ("region = 'apac'", lambda order: order["region"] == "apac"),
    "queue://orders.moon": LEGS["queue://orders.moon"],
}
ARCHIVED, ARCHIVE = "queue://plain.client", "queue://plain.archive"
CONFIG = f"""\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="{BROKER}" schedulerSupport="true">
  <destinationPolicy><policyMap><policyEntries>
    <policyEntry queue="late" expireMessagesPeriod="100"/>
    <policyEntry queue="late.held" expireMessagesPeriod="0"/>
    <policyEntry topic="firehose">
      <pendingMessageLimitStrategy><constantPendingMessageLimitStrategy limit="10"/></pendingMessageLimitStrategy>
    </policyEntry>
  </policyEntries></policyMap></destinationPolicy>
  <destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>
    <virtualTopic name="VirtualTopic.>" prefix="Consumer.*."/>
    <compositeQueue name="orders.in"><forwardTo>
      {_FILTERED}
    </forwardTo></compositeQueue>
    <compositeQueue name="never.sent"><forwardTo><queue physicalName="never.reached"/></forwardTo></compositeQueue>
  </virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>
  <plugins><redeliveryPlugin fallbackToDeadLetter="true" sendToDlqIfMaxRetriesExceeded="true">
    <redeliveryPolicyMap><redeliveryPolicyMap><redeliveryPolicyEntries>
      <redeliveryPolicy queue="again" maximumRedeliveries="2" initialRedeliveryDelay="20" redeliveryDelay="20"/>
    </redeliveryPolicyEntries></redeliveryPolicyMap></redeliveryPolicyMap>
  </redeliveryPlugin></plugins>
  <transportConnectors>
    <transportConnector name="stomp" uri="stomp://127.0.0.1:0"/>
    <transportConnector name="openwire" uri="tcp://127.0.0.1:0"/>
  </transportConnectors>
</broker>
"""
