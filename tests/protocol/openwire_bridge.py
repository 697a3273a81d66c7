"""OpenWireBridge: says what the bridge of an ActiveMQ says."""

from __future__ import annotations

import itertools

from brokerapp.openwire.commands import (
    BrokerId,
    BrokerInfo,
    ConnectionId,
    MessageCommand,
    MessageId,
    OpenWireDestination,
    ProducerId,
)
from brokerapp.openwire.wire_format_options import WireFormatOptions
from tests.protocol.openwire_client import OpenWireClient, OpenWireSocket

_numbers = itertools.count(1)


class OpenWireBridge(OpenWireClient):
    """What the bridge of an ActiveMQ says: it introduces its broker, and then logs in. `answer` is what it is told."""

    def __init__(
        self, port: int, broker: str, id: str = "ID:1", *, version: int = 12, login: tuple[str, str] = ("", ""),
        **attributes: str,
    ) -> None:  # fmt: skip
        OpenWireSocket.__init__(self, port)
        self.connection_id, self._sequence = f"{broker}->here-{next(_numbers)}:1", 0
        self.agree(WireFormatOptions(version=version))
        text = "".join(f"{name}={value}\n" for name, value in {"name": "nc", **attributes}.items())
        self.tell(
            BrokerInfo(
                broker_id=BrokerId(id), broker_name=broker, network_connection=True,
                duplex_connection=attributes.get("duplex") == "true",
                network_properties=f"#\n#now\n{text}",
            )
        )  # fmt: skip
        self.answer = self.connect(
            connection_id=ConnectionId(self.connection_id), client_id=f"nc_{broker}_outbound", user_name=login[0],
            password=login[1],
        )  # fmt: skip

    def bridged(self, destination: OpenWireDestination, text: str, number: int, *path: str, **fields) -> MessageCommand:
        """Return a message of another client that passed these brokers."""
        return self.message(
            destination, text, message_id=MessageId(None, ProducerId("ID:producer-1:1", 1, -1), number),
            broker_path=tuple(map(BrokerId, path)), **fields,
        )  # fmt: skip
