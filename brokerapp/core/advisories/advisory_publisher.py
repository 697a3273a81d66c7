"""Build advisory messages and publish them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from brokerapp.core.advisories.audience import AdvisoryAudience
from brokerapp.core.advisories.documents import Document
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.topic_batch import TopicBatch
from brokerapp.engine.routing import advisory_topics as topics
from brokerapp.model.destination import Destination
from brokerapp.model.jms.transformations import ADVISORY_JSON, HEADER
from brokerapp.model.message import Message, RoutedCopy, escape

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, TopicDispatcherPort


class AdvisoryPublisher:
    """Publishes advisories that somebody receives. `publish` publishes a message of the broker itself."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        audience: AdvisoryAudience,
        topic_dispatcher: TopicDispatcherPort,
        publish: Callable[[Message, Destination], None],
        url: Callable[[], str],
    ) -> None:
        self._audience, self._topic_dispatcher, self._publish, self._url = audience, topic_dispatcher, publish, url
        self.broker_id = f"ID:{context.name}-{context.session}"  #: as others know this run of the broker
        self._origin = {"originBrokerId": self.broker_id, "originBrokerName": context.name}
        self.count = 0  #: advisories built since the start

    def tell(self, topic: str, document: Callable[[], Document], headers: Callable[[], Document] = dict) -> None:
        """Publish an advisory with this body and these headers, if somebody receives it."""
        if self._audience.is_heard(topics.ALL) and self._audience.is_heard(topic):
            self.publish(self.message(headers(), document()), topic)

    def publish(self, message: Message, topic: str) -> None:
        """Publish a message on an advisory topic."""
        self._publish(message, Destination.topic(topic))

    def tell_local(self, topic: str, document: Document) -> None:
        """Publish an advisory to subscribers at this node only."""
        copy = RoutedCopy(Destination.topic(topic))
        self._topic_dispatcher.publish_locally([TopicBatch((self.message({}, document),), copy)])

    def offer(self, subscriber: Subscription, topic: str, headers: Document, document: Document) -> None:
        """Give an advisory to one subscriber only."""
        self._topic_dispatcher.offer_to_subscriber(
            subscriber, self.message(headers, document), RoutedCopy(Destination.topic(topic))
        )

    def message(self, headers: Document, document: Document) -> Message:
        """Return an advisory. As in ActiveMQ its headers bear no time; trace and counters know it all the same."""
        self.count += 1
        id = f"{self.broker_id}-advisory:{self.count}"
        lines = {
            "message-id": id, "expires": 0, "priority": 0, "timestamp": 0, "type": "Advisory",
            HEADER: ADVISORY_JSON, **self._origin, "originBrokerURL": self._url(), **headers,
        }  # fmt: skip
        head = "".join(f"{name}:{escape(_text(value))}\n" for name, value in lines.items())
        body = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
        return Message(id, head.encode(), body.encode(), priority=0, born_us=time.time_ns() // 1000)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
