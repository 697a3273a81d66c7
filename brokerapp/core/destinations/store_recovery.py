"""Restore the logs in the store: when the node starts, and as other nodes declare them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from brokerapp.core.destinations.reconnect_window import AT, BELONGS, OF_TEMPORARY
from brokerapp.engine.clients.temporary_owner import TemporaryOwner, session_of_temporary
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.subscription_identity import SUBSCRIPTION
from brokerapp.store import DISCARDED, LogState

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        BrokerContext,
        BrokerEvents,
        CreationPort,
        DurableRecovery,
        Placement,
        QueueLifecycle,
        ReconnectWindowPort,
        TemporaryRecovery,
    )


class StoreRecovery:
    """Gives each log to the part that knows it. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        creation: CreationPort,
        durables: DurableRecovery,
        events: BrokerEvents,
        placement: Placement,
        queues: QueueLifecycle,
        reconnect_window: ReconnectWindowPort,
        temporaries: TemporaryRecovery,
    ) -> None:
        self._session, self._commits = context.session, context.commits
        self._creation, self._durables = creation, durables
        self._placement, self._queues, self._reconnect_window = placement, queues, reconnect_window
        self._events, self._temporaries = events, temporaries

    def recover(self, states: Collection[LogState]) -> None:
        """Restore the logs in the store."""
        for state in states:
            self._recover(state)
        self._events.logs_recovered({state.name: state.last_seq for state in states})

    def _recover(self, state: LogState) -> None:
        self._commits.locate(state.name, state.attributes)
        kind, destination = state.attributes.get("kind"), Destination.parse(state.name)
        if kind in (SUBSCRIPTION, DISCARDED):
            self._durables.recover(state)
        elif destination.is_temporary:
            self._recover_temporary(destination, state)
        elif kind == DestinationKind.TOPIC:
            self._creation.recover(destination)
        else:
            self._queues.recover(state)

    def _recover_temporary(self, destination: Destination, state: LogState) -> None:
        """One that another node has, or whose client may reconnect; the others went with their clients."""
        at = _owner_session(destination, state.attributes)
        if BELONGS not in state.attributes and not self._placement.is_other_member(at):
            self._commits.discard_log(state.name)
            return
        if destination.is_queue:
            self._queues.recover(state)
        self._note_owner(destination, at, state.attributes)

    def _note_owner(self, destination: Destination, at: str, attributes: Mapping[str, Any]) -> None:
        """A temporary destination is had by that node; of one that is gone, by its home."""
        placement, whose = self._placement, attributes.get(BELONGS)
        if destination.is_queue:
            self._queues.kept[destination] = {each: attributes[each] for each in OF_TEMPORARY & attributes.keys()}
        if at == self._session:
            return
        belongs = TemporaryOwner.from_json(whose) if whose else None
        if belongs is None or placement.is_other_member(at) or not placement.is_local(str(destination)):
            self._temporaries.learn(destination, at, belongs)
        else:
            self._reconnect_window.recover(destination, belongs)

    def learn(self, name: str, attributes: str | None) -> None:
        """Take over what another node wrote of a log: created, changed, or removed (None)."""
        described = json.loads(attributes) if attributes else {"kind": DISCARDED}
        kind, log = described.get("kind"), self._queues.get(name)
        is_subscription = Destination.parse(name).kind is DestinationKind.SUBSCRIPTION
        if attributes is None and is_subscription:
            self._durables.on_removal_completed(name)
        elif kind == DISCARDED:
            self._unlearn(name)
        elif kind == DestinationKind.TOPIC or log is None:
            self._recover(LogState(name, described, 0, ""))
        elif kind == SUBSCRIPTION:
            self._durables.described(log, described)
        else:
            self._queues.described(log, described)
            if log.destination.is_temporary:
                self._note_owner(log.destination, _owner_session(log.destination, described), described)

    def _unlearn(self, name: str) -> None:
        """Another node removed a log, or a topic that was declared."""
        destination, log = Destination.parse(name), self._queues.get(name)
        is_subscription, gets_ours = (
            destination.kind is DestinationKind.SUBSCRIPTION,
            self._commits.has_pending_for(name),
        )
        self._placement.on_log_removed(name)
        if log is None:
            part = self._temporaries if destination.is_temporary else self._creation
            part.on_deleted_remotely(destination)
        elif not log.is_remote and gets_ours and not (is_subscription or destination.is_temporary):
            self._queues.redeclare(log)  # it gets messages of ours as this comes
        else:
            self._placement.outbound_consumers.on_log_removed(name)
            (self._durables if is_subscription else self._queues).on_removed_remotely(log)
            if destination.is_temporary:
                self._temporaries.on_deleted_remotely(destination)
            if gets_ours:
                self._commits.clear(name)


def _owner_session(temporary: Destination, attributes: Mapping[str, Any]) -> str:
    """The session of the node whose client a temporary destination belongs to, or for whose client it waits."""
    return attributes.get(AT) or session_of_temporary(str(temporary))
