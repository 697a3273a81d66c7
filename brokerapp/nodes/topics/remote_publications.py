"""Gives the subscribers of topics at this node what was published at other nodes."""

from __future__ import annotations

from brokerapp.core.ports import TopicDispatcherPort
from brokerapp.engine.entries.topic_batch import TopicBatch
from brokerapp.engine.routing.advisory_topics import is_advisory
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, RoutedCopy
from brokerapp.nodes.ports import RepeatedMessages
from brokerapp.nodes.topics.remote_advisories import RemoteAdvisories


class RemotePublications:
    """Publishes messages of other nodes to local subscribers."""

    def __init__(
        self, *, topic_dispatcher: TopicDispatcherPort, bridges: RepeatedMessages, remote_advisories: RemoteAdvisories
    ) -> None:
        self._topic_dispatcher, self._bridges, self._remote_advisories = topic_dispatcher, bridges, remote_advisories

    def on_published(self, session: str, topic: str, stored: bytes, original: str, shown: str, by: str | None) -> None:
        """Publish a message here, unless a bridge of the broker `by` brought it to this node before."""
        at = (Destination.parse(each) if each else None for each in (original, shown))
        copy, message = RoutedCopy(Destination.parse(topic), *at), Message.load(stored)
        if by is not None and self._bridges.record_arrival(message, copy.destination, by):
            return
        is_told = is_advisory(copy.destination)
        if is_told and not self._remote_advisories.on_advisory(session, copy.destination.name, message.body):
            return  # listeners here know it
        self._topic_dispatcher.publish_locally([TopicBatch((message,), copy)])
