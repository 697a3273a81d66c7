"""The XML file that ActiveMQ and Sluice are both started with: a STOMP connector, and the routes to be declared."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from benchmarks.scenarios.rows import Scenario

_BROKER = """<?xml version="1.0" encoding="UTF-8"?>
<beans xmlns="http://www.springframework.org/schema/beans"
       xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
       xsi:schemaLocation="http://www.springframework.org/schema/beans http://www.springframework.org/schema/beans/spring-beans.xsd
         http://activemq.apache.org/schema/core http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="{name}" dataDirectory="{data}" useJmx="false"
          schedulerSupport="{scheduler}">
{extra}{route}    <transportConnectors>
      <transportConnector name="stomp" uri="{scheme}://127.0.0.1:{port}"/>{openwire}
    </transportConnectors>
  </broker>
</beans>
"""
_OPENWIRE = '\n      <transportConnector name="openwire" uri="tcp://127.0.0.1:{port}"/>'


def broker_xml(
    scenario: Scenario, port: int, data: Path, extra: str = "", scheme: str = "stomp", name: str = "bench",
    openwire_port: int | None = None,
) -> str:  # fmt: skip
    """A broker with one connector on this port of 127.0.0.1 that keeps its data in `data`, and what `extra` adds.

    It speaks OpenWire at another port, where there is one.

    Everything else is at its default: KahaDB, which writes to disk before it answers, and the virtual topics.
    """
    return _BROKER.format(
        data=escape(str(data), {'"': "&quot;"}),
        extra=extra,
        route=(route := scenario.route.xml()),
        scheduler=str("redeliveryPlugin" in route).lower(),
        port=port,
        scheme=scheme,
        openwire=_OPENWIRE.format(port=openwire_port) if openwire_port is not None else "",
        name=name,
    )


def destinations_xml(queues: Iterable[str]) -> str:
    """Queues that exist from the start."""
    lines = "".join(f"      <queue physicalName={quoteattr(name)}/>\n" for name in queues)
    return f"    <destinations>\n{lines}    </destinations>\n"


def definitions_xml(count: int) -> str:
    """So many composite queues, to which nothing is sent."""
    lines = "".join(
        f'          <compositeQueue name="other.{number}"><forwardTo><queue physicalName="to.{number}"/></forwardTo>'
        "</compositeQueue>\n"
        for number in range(count)
    )
    return (
        "    <destinationInterceptors>\n      <virtualDestinationInterceptor>\n        <virtualDestinations>\n"
        f"{lines}"
        "        </virtualDestinations>\n      </virtualDestinationInterceptor>\n    </destinationInterceptors>\n"
    )
