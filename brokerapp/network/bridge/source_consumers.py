"""Keep the subscriptions of a bridge at its source."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from brokerapp.network.bridge.demand import DemandSubscription
from brokerapp.network.links.broker_link import BridgedMessage, BridgeSubscription, BrokerLink
from brokerapp.network.options.client_ids import durable_name
from brokerapp.network.options.destination_filter import exclusions_within
from brokerapp.network.options.options import ConnectorOptions

#: Seconds after which what a broker refused is tried again: rights may be others then. A subscription is tried sooner
#: once: a bridge before may have it, which the source has not missed yet.
SUSPENDED_SECONDS, REFUSED_SECONDS = 60.0, 5.0
#: How receipts of subscriptions begin.
_SUBSCRIBED = "begun:"


class SourceConsumers:
    """Of one bridge. `here` and `there` are the brokers at its ends; `given` is told of each message."""

    def __init__(
        self,
        source: BrokerLink,
        here: str,
        there: str,
        terms: ConnectorOptions,
        prefix: str,
        given: Callable[[BridgedMessage], None],
    ) -> None:
        self._source, self._here, self._there, self._terms = source, here, there, terms
        self._prefix, self._on_message = prefix, given
        self._durables: set[str] = set()  # subscriptions
        self._ending: dict[str, DemandSubscription] = {}  # subscriptions that are over when all theirs is confirmed
        self._refused: set[str] = set()  # the ids of those that the source refused when they were tried last
        self.suspended: dict[str, str] = {}  #: by the id of a Wanted: why none of it crosses for now

    # -- subscriptions

    def begin(self, wanted: DemandSubscription) -> None:
        """Consume it, or say for whom that is from now on."""
        if wanted.id in self.suspended:
            return
        subscription = BridgeSubscription(
            id=self._prefix + wanted.id,
            destination=wanted.destination,
            to=self._there,
            message_ttl=self._terms.message_ttl,
            path=wanted.path,
            prefetch=self._terms.prefetch_size,
            priority=wanted.priority,
            selector=wanted.selector,
            consumers=wanted.origins,
            suppresses_duplicates=self._suppresses_duplicates(wanted),
            excluded=() if wanted.static else tuple(exclusions_within(self._terms, wanted.destination)),
            durable_name=self._durable_name(wanted) if wanted.durable else None,
        )
        if wanted.durable:
            self._durables.add(subscription.id)
        self._source.subscribe(subscription, self._on_message, f"{self._prefix}{_SUBSCRIBED}{wanted.id}")

    def _suppresses_duplicates(self, wanted: DemandSubscription) -> bool:
        """Whether it is to stand aside where another bridge serves its consumer."""
        if wanted.destination.is_queue:
            return self._terms.suppress_duplicate_queue_subscriptions
        return self._terms.suppress_duplicate_topic_subscriptions

    def end(self, wanted: DemandSubscription) -> None:
        """Pass on nothing more for it. It is unsubscribed when what is on its way is confirmed: else that came back."""
        if self.suspended.pop(wanted.id, None) is not None and self._prefix + wanted.id not in self._ending:
            self._refused.discard(wanted.id)
            self._delete_durable(wanted)  # it is unsubscribed
            return
        self._ending[self._prefix + wanted.id] = wanted

    def suspend(self, wanted: DemandSubscription, why: str) -> None:
        """Suspend a subscription of which the target takes nothing, and try it again later."""
        if wanted.id not in self.suspended:
            self.suspended[wanted.id] = why
            self._ending[self._prefix + wanted.id] = wanted
            self._retry_later(wanted, SUSPENDED_SECONDS)

    def is_subscription_receipt(self, receipt: str) -> bool:
        """Whether this is what a receipt of a subscription is called, without the prefix."""
        return receipt.startswith(_SUBSCRIBED)

    def on_subscribed(self, receipt: str) -> None:
        """Note that the source serves the subscription of this receipt."""
        self._refused.discard(receipt.removeprefix(_SUBSCRIBED))

    def on_refused(self, receipt: str, wanted: Mapping[str, DemandSubscription], why: str) -> DemandSubscription | None:
        """Try the subscription of this receipt, which the source refuses, again later.

        Which of these that are wanted it is; None: it is wanted no more.
        """
        found = wanted.get(receipt.removeprefix(_SUBSCRIBED))
        if found is None or found.id in self.suspended:
            return None
        self.suspended[found.id] = why
        self._retry_later(found, SUSPENDED_SECONDS if found.id in self._refused else REFUSED_SECONDS)
        self._refused.add(found.id)
        return found

    def _retry_later(self, wanted: DemandSubscription, seconds: float) -> None:
        self._source.call_later(seconds, lambda: self._retry(wanted))

    def _retry(self, wanted: DemandSubscription) -> None:
        if wanted.id not in self.suspended:
            return
        if self._prefix + wanted.id in self._ending:  # some of it is still under way
            self._retry_later(wanted, SUSPENDED_SECONDS)
            return
        del self.suspended[wanted.id]
        self.begin(wanted)

    def is_ending(self, subscription: str) -> bool:
        """Whether what is given for it goes back when it is unsubscribed."""
        return subscription in self._ending

    def is_durable(self, subscription: str) -> bool:
        """Whether what it is given was kept for it, also what may not cross."""
        return subscription in self._durables

    def unsubscribe_idle(self, busy: Callable[[], Collection[str]]) -> None:
        """Unsubscribe those that are over, of which nothing is on its way: `busy` says of which something is."""
        if not self._ending:
            return
        there = busy()
        for id in [id for id in self._ending if id not in there]:
            wanted = self._ending.pop(id)
            self._source.unsubscribe(id)
            self._durables.discard(id)
            if wanted.id not in self.suspended:
                self._delete_durable(wanted)

    # -- durable subscriptions

    def _durable_name(self, wanted: DemandSubscription) -> str:
        return durable_name(self._here, wanted.destination.name)

    def _delete_durable(self, wanted: DemandSubscription) -> None:
        if wanted.durable:
            self._source.delete_durable(self._durable_name(wanted))

    def keep_durables(self, topics: Collection[str]) -> None:
        """Remove durable subscriptions of this connector but those of these topics."""
        self._source.keep_durables([durable_name(self._here, topic) for topic in sorted(topics)])

    def remove_all(self, wanted: Collection[DemandSubscription]) -> None:
        """For good: of these subscriptions, which are all, nothing is to be kept any more."""
        for each in wanted:
            if each.durable and each.id not in self.suspended:
                self._source.unsubscribe(self._prefix + each.id)
        self.keep_durables(())
