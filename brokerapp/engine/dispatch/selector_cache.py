"""Remember the selectors of a queue's consumers, present and past, for virtual topics that are `selectorAware`.

ActiveMQ's `virtualSelectorCacheBrokerPlugin`. With it the messages that an absent consumer's selector takes, and only
those, are kept for it. Pure: the broker says who comes and goes and keeps `entries_of` in the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from brokerapp.errors import SelectorSyntaxError
from brokerapp.model.selector_prefixes import condition_of
from brokerapp.selectors import Selector, compile_selector
from brokerapp.selectors.tree import Like, SelectorNode, children

#: How a consumer without a selector is kept, as in ActiveMQ.
MATCH_ALL = "TRUE"
#: Selectors kept for one queue. Beyond it the queue takes everything: too many messages rather than lost ones.
MAX_SELECTORS = 5_000


@dataclass(frozen=True, slots=True)
class SelectorCachePolicy:
    """Hold the options of the plugin."""

    single: bool = (
        False  #: the last selector of a queue replaces the former one (a consumer without any is kept beside)
    )
    ignore_wildcards: bool = False  #: leave out selectors with a % or _ in a LIKE
    persist_interval_ms: int = 600_000  #: an entry's last use is written no more often; a new entry at once
    expire_after_ms: int = 0  #: an entry nobody used for so long is forgotten; 0: never


class SelectorCache:
    """Selectors by queue, each with the time of its last use (milliseconds since the epoch)."""

    def __init__(self, rules: SelectorCachePolicy) -> None:
        self.policy = rules
        self._by_queue: dict[str, dict[str, int]] = {}
        self._compiled: dict[str, list[Selector]] = {}  # of the queue's entries

    def __iter__(self) -> Iterator[str]:
        """Iterate over the queues with entries."""
        return iter(self._by_queue)

    def entries_of(self, queue: str) -> dict[str, int]:
        """Return the selectors of a queue with their last use."""
        return self._by_queue.get(queue, {})

    def load(self, queue: str, entries: Mapping[str, int]) -> None:
        """Restore the entries of a queue."""
        if entries:
            self._set(queue, dict(entries))

    def is_wanted(self, queue: str, headers: Mapping[str, str]) -> bool:
        """Return whether a former consumer would take a message with these headers."""
        return any(selector.matches(headers) for selector in self._compiled.get(queue, ()))

    def on_consumer_added(self, queue: str, selector: Selector | None, now_ms: int) -> bool:
        """Note a new consumer; return whether the entries have to be stored."""
        text = _text(selector)
        if selector is not None and self.policy.ignore_wildcards and has_wildcard(selector.tree):
            return False
        entries = self._by_queue.get(queue, {})
        if text in entries:
            return self._used(entries, text, now_ms)
        remaining = entries
        if self.policy.single and text != MATCH_ALL:
            remaining = {each: used for each, used in entries.items() if each == MATCH_ALL}
        elif len(entries) >= MAX_SELECTORS:
            remaining, text = {}, MATCH_ALL
        self._set(queue, {**remaining, text: now_ms})
        return True

    def on_consumer_removed(
        self, queue: str, selector: Selector | None, left: Iterable[Selector | None], now_ms: int
    ) -> bool:
        """Note that a consumer left, and who is `left`; return whether the entries have to be stored."""
        entries, text = self._by_queue.get(queue, {}), _text(selector)
        if text not in entries:
            return False
        if self.policy.single and text == MATCH_ALL and len(entries) > 1 and None not in left:
            return self.forget(queue, text)
        return self._used(entries, text, now_ms)

    def forget(self, queue: str, text: str | None = None) -> bool:
        """Remove the entries of a queue with this condition, or all; return whether there was any."""
        entries, gone = self._by_queue.get(queue, {}), None if text is None else condition_of(text)
        remaining = {each: used for each, used in entries.items() if gone is not None and condition_of(each) != gone}
        self._set(queue, remaining)
        return len(remaining) < len(entries)

    def expire(self, queue: str, present: Iterable[Selector | None], now_ms: int) -> bool:
        """Remove entries that were not used for too long and that no consumer has; return whether any were."""
        if not self.policy.expire_after_ms:
            return False
        in_use, oldest = {_text(each) for each in present}, now_ms - self.policy.expire_after_ms
        entries = self._by_queue.get(queue, {})
        remaining = {each: used for each, used in entries.items() if used > oldest or each in in_use}
        self._set(queue, remaining)
        return len(remaining) < len(entries)

    def _used(self, entries: dict[str, int], text: str, now_ms: int) -> bool:
        if now_ms - entries[text] < self.policy.persist_interval_ms:
            return False
        entries[text] = now_ms
        return True

    def _set(self, queue: str, entries: dict[str, int]) -> None:
        if not entries:
            self._by_queue.pop(queue, None)
            self._compiled.pop(queue, None)
            return
        self._by_queue[queue] = entries
        self._compiled[queue] = list(_compiled(entries))


def has_wildcard(node: SelectorNode) -> bool:
    """Return whether a selector has a LIKE whose pattern holds an unescaped % or _."""
    if isinstance(node, Like):
        pattern = node.pattern
        if node.escape:
            for special in (node.escape, "%", "_"):
                pattern = pattern.replace(node.escape + special, "")
        if "%" in pattern or "_" in pattern:
            return True
    return any(map(has_wildcard, children(node)))


def _text(selector: Selector | None) -> str:
    return MATCH_ALL if selector is None else selector.text


def _compiled(entries: Iterable[str]) -> Iterator[Selector]:
    for text in entries:
        try:
            yield compile_selector(text)
        except SelectorSyntaxError:  # kept by a version that read it: counts as no match, as in ActiveMQ
            continue
