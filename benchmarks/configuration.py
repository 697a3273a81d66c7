"""The XML file that ActiveMQ and Sluice are both started with: a STOMP connector, and the routes to be declared."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from benchmarks.scenarios import FilteredComposite, Scenario

_BROKER = """<?xml version="1.0" encoding="UTF-8"?>
<beans xmlns="http://www.springframework.org/schema/beans"
       xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
       xsi:schemaLocation="http://www.springframework.org/schema/beans http://www.springframework.org/schema/beans/spring-beans.xsd
         http://activemq.apache.org/schema/core http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="bench" dataDirectory="{data}" useJmx="false">
{interceptors}    <transportConnectors>
      <transportConnector name="stomp" uri="stomp://127.0.0.1:{port}"/>
    </transportConnectors>
  </broker>
</beans>
"""

_INTERCEPTORS = """    <destinationInterceptors>
      <virtualDestinationInterceptor>
        <virtualDestinations>
          <compositeQueue name={name}>
            <forwardTo>
{legs}
            </forwardTo>
          </compositeQueue>
        </virtualDestinations>
      </virtualDestinationInterceptor>
    </destinationInterceptors>
"""


def broker_xml(scenario: Scenario, port: int, data: Path) -> str:
    """A broker with a STOMP connector on this port of 127.0.0.1 that keeps its data in `data`.

    Everything else is at its default: KahaDB, which writes to disk before it answers, and the virtual topics.
    """
    interceptors = ""
    if isinstance(scenario.route, FilteredComposite):
        interceptors = _INTERCEPTORS.format(name=quoteattr(scenario.route.name), legs=_legs(scenario.route))
    return _BROKER.format(data=escape(str(data), {'"': "&quot;"}), interceptors=interceptors, port=port)


def _legs(route: FilteredComposite) -> str:
    return "\n".join(
        f"              <filteredDestination selector={quoteattr(selector)} queue={quoteattr(queue)}/>"
        for queue, selector in route.filtered()
    )
