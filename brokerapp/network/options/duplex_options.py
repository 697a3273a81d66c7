"""Read from what another broker says of its duplex connector what this broker forwards to there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from brokerapp.model.destination import Destination
from brokerapp.network.options.definition import NetworkConnector
from brokerapp.network.options.options import ATTRIBUTES, ConnectorOptions, options_of

#: How the filter of a connector begins, which an ActiveMQ tells as the name of a topic.
_CONSUMERS = "ActiveMQ.Advisory.Consumer."
#: Attributes that say what the other broker does, not what this one does.
_OTHER_SIDE = frozenset({"duplex", "autoStart", "destinationFilter", "remoteUserName", "remotePassword"})

#: A connector has an address, and this one makes no connection.
_UNUSED_ADDRESS = "tcp://localhost:1"


def duplex_options(connector: str, attributes: Mapping[str, str]) -> ConnectorOptions:
    """Return the options of the bridge back, by the attributes of the connector of this name as an ActiveMQ tells them.

    Raises ConfigurationRefused or InvalidDestination for those that mean nothing.
    """
    known = {name: text for name, text in attributes.items() if name in ATTRIBUTES and name not in _OTHER_SIDE}
    options, _ = options_of(
        NetworkConnector(
            connector, _UNUSED_ADDRESS,
            dynamically_included=_listed(attributes.get("dynamicallyIncludedDestinations", "")),
            statically_included=_listed(attributes.get("staticallyIncludedDestinations", "")),
            excluded=_listed(attributes.get("excludedDestinations", "")), options=tuple(known.items()),
        )
    )  # fmt: skip
    filter = attributes.get("destinationFilter") or None
    return replace(options, addresses=(), destination_filter=filter and filter.removeprefix(_CONSUMERS))


def _listed(text: str) -> tuple[Destination, ...]:
    """Return the destinations of a list as Java writes it: `[queue://a, topic://b]`."""
    names = text.strip().removeprefix("[").removesuffix("]").split(",")
    return tuple(Destination.parse(each.strip()) for each in names if each.strip())
