"""Find which consumer queues are subscription queues of a topic, by their names. Pure.

`Consumer.*.>;2` says that a queue named `Consumer.A.Orders.eu` belongs to the topic that its name holds from the
element number 2 on (counted from 0): a consumer of it gets `Orders.eu::Consumer.A.Orders.eu`. This is how Artemis
serves clients that were written for virtual topics (`virtualTopicConsumerWildcards`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from brokerapp.errors import ConfigurationRefused
from brokerapp.model.destination import ANY_ELEMENT, ANY_REST, QUALIFIER, SEPARATOR

#: What the option of a connector is called.
OPTION = "virtualTopicConsumerWildcards"
#: Names whose mapping is remembered, when the connector does not say: names come from clients.
DEFAULT_CACHE_SIZE = 10_000
_SELECTOR_AWARE = "selectorAware"


@dataclass(frozen=True, slots=True)
class ConsumerQueueMapping:
    """Names matching `filter` belong to the topic that begins with their element number `terminus`."""

    filter: str
    terminus: int
    selector_aware: bool = False  #: a queue made for a consumer takes only what the consumer's selector does

    def topic_of(self, name: str) -> str | None:
        """The topic a queue of this name belongs to; None when it does not match, or nothing is left for the topic."""
        elements = name.split(SEPARATOR)
        if len(elements) <= self.terminus or not _matches(self.filter.split(SEPARATOR), elements):
            return None
        return SEPARATOR.join(elements[self.terminus :])

    @property
    def can_match(self) -> bool:
        """Whether any name that the filter takes is long enough."""
        elements = self.filter.split(SEPARATOR)
        return elements[-1] == ANY_REST or len(elements) > self.terminus


@dataclass(frozen=True, slots=True)
class MappedQueue:
    """The subscription queue that a consumer queue is mapped to."""

    name: str  #: fully qualified
    selector_aware: bool


class ConsumerMappings:
    """The mappings of one connector, in the order they are written: the first that matches counts."""

    def __init__(self, mappings: tuple[ConsumerQueueMapping, ...], remembered: int = DEFAULT_CACHE_SIZE) -> None:
        self.mappings = mappings
        self.mapped = lru_cache(maxsize=max(0, remembered))(self._mapped)  #: of a queue's name, None: it stays

    def _mapped(self, name: str) -> MappedQueue | None:
        for each in self.mappings:
            topic = each.topic_of(name)
            if topic:
                return MappedQueue(f"{topic}{QUALIFIER}{name}", each.selector_aware)
        return None


def _matches(wanted: list[str], elements: list[str]) -> bool:
    if wanted[-1] == ANY_REST:
        while wanted and wanted[-1] == ANY_REST:
            wanted.pop()
        found = elements[: len(wanted)]
        return len(found) == len(wanted) and all(
            ANY_ELEMENT in (want, element) or want == element for want, element in zip(wanted, found, strict=True)
        )
    return len(wanted) == len(elements) and all(
        want in (ANY_ELEMENT, element) for want, element in zip(wanted, elements, strict=True)
    )


def parse_mappings(value: str) -> tuple[tuple[ConsumerQueueMapping, ...], list[str]]:
    """The mappings that the option's value lists (`FILTER;NUMBER[;selectorAware=true],...`), and what is odd in it.

    Raises ConfigurationRefused, which names the mapping and the rule.
    """
    texts = value.split(",")
    while texts and not texts[-1]:
        texts.pop()
    mappings: list[ConsumerQueueMapping] = []
    warnings: list[str] = []
    for text in texts:
        mapping = _mapping(text, warnings)
        if any(each.filter == mapping.filter for each in mappings):
            raise _refused(text, f"there is a mapping for {mapping.filter!r} already")
        mappings.append(mapping)
    warnings += _overlaps(mappings)
    return tuple(mappings), warnings


def _mapping(text: str, warnings: list[str]) -> ConsumerQueueMapping:
    filter, *rest = text.split(";")
    if not filter.strip():
        raise _refused(text, "the filter is empty")
    if not rest:
        raise _refused(text, f"the number is missing, as in {filter};2, where a uri has %3B for the ;")
    if re.fullmatch("[0-9]{1,9}", rest[0]) is None:
        raise _refused(text, f"{rest[0]!r} is not a whole number")
    selector_aware = False
    for option in rest[1:]:
        name, _, setting = option.partition("=")
        if name == _SELECTOR_AWARE and setting.lower() in ("true", "false"):
            selector_aware = setting.lower() == "true"
        else:
            warnings.append(f"{text!r}: {option!r} has no effect, only {_SELECTOR_AWARE}=true or =false is known")
    mapping = ConsumerQueueMapping(filter, int(rest[0]), selector_aware)
    if not mapping.can_match:
        warnings.append(f"{text!r} never matches: the names it takes have no element number {mapping.terminus}")
    return mapping


def _overlaps(mappings: list[ConsumerQueueMapping]) -> Iterator[str]:
    """Sentences about mappings of which an earlier one takes some names away."""
    for position, later in enumerate(mappings):
        for earlier in mappings[:position]:
            if _overlap(earlier.filter.split(SEPARATOR), later.filter.split(SEPARATOR)):
                yield f"{earlier.filter!r} and {later.filter!r} overlap: the first, {earlier.filter!r}, counts"


def _overlap(one: list[str], other: list[str]) -> bool:
    for left, right in zip(one, other, strict=False):
        if ANY_REST in (left, right):
            return True
        if left != right and ANY_ELEMENT not in (left, right):
            return False
    longer = one if len(one) > len(other) else other
    return len(one) == len(other) or longer[min(len(one), len(other))] == ANY_REST


def _refused(text: str, rule: str) -> ConfigurationRefused:
    return ConfigurationRefused(f"{OPTION}: {text!r}: {rule}")
