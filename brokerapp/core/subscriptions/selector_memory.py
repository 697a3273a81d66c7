"""Store the selectors of present and past consumers with their queue.

Without ActiveMQ's plugin for that (`virtualSelectorCacheBrokerPlugin`) nothing is remembered, and nothing wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.selector_cache import SelectorCache, SelectorCachePolicy
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.model.settings import Settings
from brokerapp.system import clock
from brokerapp.system.timers import Timers

#: Milliseconds between two looks for remembered selectors that nobody used for too long.
EXPIRY_MS = 10_000


class SelectorMemory:
    """A part of Queues; `describe` writes down what there is to know of a queue."""

    def __init__(self, cache: SelectorCache | None, describe: Callable[[MessageLog], None]) -> None:
        self._cache, self._describe = cache, describe

    def load(self, log: MessageLog, entries: Mapping[str, int]) -> None:
        """What was written down of a queue."""
        if self._cache is not None:
            self._cache.load(log.name, entries)

    def entries_of(self, queue: str) -> Mapping[str, int]:
        """Selector -> last use, of a queue."""
        return {} if self._cache is None else self._cache.entries_of(queue)

    def wants(self, queue: str, headers: Mapping[str, str]) -> bool:
        """Whether a consumer that was there once would take a message with these headers."""
        return self._cache is not None and self._cache.is_wanted(queue, headers)

    def came(self, subscription: Subscription, log: MessageLog) -> None:
        """A consumer began."""
        if self._cache is None or not log.destination.is_queue or log.destination.is_temporary:
            return
        if self._cache.on_consumer_added(log.name, subscription.consumer_selector, clock.now_ms()):
            self._describe(log)

    def went(self, subscription: Subscription, log: MessageLog) -> None:
        """A consumer ended."""
        left = [each.consumer_selector for each in log.consumers]
        if self._cache is not None and self._cache.on_consumer_removed(
            log.name, subscription.consumer_selector, left, clock.now_ms()
        ):
            self._describe(log)

    def gone(self, log: MessageLog) -> None:
        """The queue is deleted."""
        if self._cache is not None:
            self._cache.forget(log.name)

    def forget(self, log: MessageLog, selector: str | None) -> bool:
        """Remember one selector of a queue's former consumers no longer, or none; whether there was any."""
        found = self._cache is not None and self._cache.forget(log.name, selector)
        if found:
            self._describe(log)
        return found

    def watch(self, logs: Iterable[MessageLog], timers: Timers) -> None:
        """Start to forget selectors of these logs that nobody used for too long, where there is a limit."""
        if self._cache is not None and self._cache.policy.expire_after_ms:
            timers.call_every(EXPIRY_MS, lambda: self.expire(logs), clock.now_ms())

    def expire(self, logs: Iterable[MessageLog]) -> None:
        """Forget selectors that nobody used for too long."""
        if self._cache is None:
            return
        remembered = set(self._cache)
        for log in [each for each in logs if each.name in remembered]:
            if self._cache.expire(log.name, [each.consumer_selector for each in log.consumers], clock.now_ms()):
                self._describe(log)


def selector_cache_of(settings: Settings) -> SelectorCache | None:
    """Return an empty cache of selectors, as the settings describe it; None when they want none."""
    wanted = settings.selector_cache
    if wanted is None:
        return None
    return SelectorCache(
        SelectorCachePolicy(
            single=wanted.single_selector_per_destination,
            ignore_wildcards=wanted.ignore_wildcard_selectors,
            persist_interval_ms=wanted.persist_interval,
            expire_after_ms=wanted.expire_after,
        )
    )
