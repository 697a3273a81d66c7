"""Carry out the requests of other brokers of the cluster."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from brokerapp.cluster.change_log import ChangeLog, ChangeTarget
from brokerapp.cluster.peer import ANSWER, ClusterPeer
from brokerapp.cluster.record import ClusterChange
from brokerapp.cluster.remote_temporaries import RemoteTemporaries
from brokerapp.core.ports import CreationPort, RejectionsPort, Replies
from brokerapp.engine.clients.client import Client
from brokerapp.engine.clients.temporary_owner import TemporaryOwner
from brokerapp.errors import RequestRefused
from brokerapp.model.commands import RefusedSend, SendBatchCommand, SendCommand
from brokerapp.model.destination import Destination

logger = logging.getLogger(__name__)


class PeerRequests:
    """Carries out the requests of other brokers: SENDs over their links, whose bodies are JSON with a verb."""

    def __init__(
        self,
        *,
        name: str,
        peers: Mapping[str, ClusterPeer],
        recording: ChangeLog,
        changes: ChangeTarget,
        remote_temporaries: RemoteTemporaries,
        creation: CreationPort,
        rejections: RejectionsPort,
        replies: Replies,
    ) -> None:
        self._peers = peers
        self._name, self._recording, self._changes, self._creation = name, recording, changes, creation
        self._remote_temporaries, self._rejections, self._replies = remote_temporaries, rejections, replies
        #: Handlers by verb, called with the name of the broker.
        self._handlers: dict[str, Callable[..., None]] = {
            "record is": recording.on_record_part,
            "recorded": lambda teller, id, version, change: recording.on_change(
                teller, id, version, ClusterChange.from_json(change)
            ),
            "tell record": lambda teller: recording.send_record(peers[teller]),
            "change": lambda _teller, change: changes.apply_later(ClusterChange.from_json(change)),
            "destroy": self._on_destroy,
            "temporary": self._on_temporary,
            "temporary gone": lambda teller, destination: remote_temporaries.on_removed_remotely(
                teller, Destination.parse(destination)
            ),
            "temporaries are": self._on_temporaries,
            "serving": lambda teller, serving: setattr(peers[teller], "serving", serving),
        }

    def on_send_batch(self, client: Client, batch: SendBatchCommand) -> None:
        """Do what another broker asks; what is refused does not stop the rest."""
        for request in batch.requests:
            if isinstance(request, SendCommand):
                self._replies.try_command(client, self._on_send, request)
            elif isinstance(request, RefusedSend):
                self._replies.refuse(client, request.error, request.receipt)
            else:
                error = RequestRefused("brokers of a cluster ask for nothing in transactions")
                self._replies.refuse(client, error, request.receipt)

    def _on_send(self, client: Client, send: SendCommand) -> None:
        """Carry out a request of another broker. Raises RequestRefused."""
        try:
            document = json.loads(send.body)
            self._handle(client, send, str(document.pop("verb")), document)
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            logger.exception("what %s told cannot be read", client.cluster_member)
            raise RequestRefused(f"{self._name} received an invalid request: {wrong!r}") from wrong

    def _handle(self, client: Client, send: SendCommand, verb: str, document: dict[str, Any]) -> None:
        if verb == "record":
            change = ClusterChange.from_json(document["change"])
            self._recording.on_change_requested(
                change, lambda why, version: self._answer(client, send, why, str(version))
            )
        elif verb == "late":
            self._rejections.expire_remote(client, document["ack"])
        elif verb in self._handlers:
            self._handlers[verb](client.cluster_member, **document)
            self._replies.confirm(client, send.receipt)
        else:
            raise RequestRefused(f"{self._name} does not support {verb!r}: it runs another version")

    def _answer(self, client: Client, send: SendCommand, why_not: str, answer: str) -> None:
        if why_not:
            self._replies.refuse(client, RequestRefused(why_not), send.receipt)
        else:
            self._replies.confirm(client, f"{send.receipt}{ANSWER}{answer}")
        client.sink.flush()

    def _on_destroy(self, _teller: str, destination: str) -> None:
        found = Destination.parse(destination)
        if not self._creation.is_declared(found):
            self._changes.apply_later(ClusterChange.of_destination(found, False))

    def _on_temporary(self, teller: str, destination: str, belongs: Mapping[str, Any]) -> None:
        found = Destination.parse(destination)
        if self._peers[teller].broker == self._name:
            self._remote_temporaries.on_taken_over(found)
        else:
            self._remote_temporaries.on_added_remotely(teller, found, TemporaryOwner.from_json(belongs))

    def _on_temporaries(self, teller: str, entries: list[Any], first: bool, last: bool) -> None:
        part = {Destination.parse(each): TemporaryOwner.from_json(belongs) for each, belongs in entries}
        self._remote_temporaries.on_list_part(teller, part, first=first, last=last)
