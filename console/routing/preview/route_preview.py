"""Describe the route that a message would take, step by step, and why a destination does not receive it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from brokerapp.errors import RequestRefused
from brokerapp.model.definition_codec import KINDS
from brokerapp.model.definitions import (
    CompositeDestination,
    Definitions,
    MirroredQueue,
    VirtualDestination,
    VirtualTopic,
)
from brokerapp.model.destination import Destination
from brokerapp.model.selector_prefixes import condition_of
from brokerapp.model.stats_records import DestinationStats
from brokerapp.selectors import compile_selector
from brokerapp.selectors.explain import ClauseExplanation, explain
from console.routing.definitions.definition_values import label_of, title_of
from console.routing.map.graph import feeds_into
from console.routing.preview.sample_message import SampleMessage
from console.ui.formatting.number_format import pluralize_count

Stats = Mapping[Destination, DestinationStats]


#: What happens to messages in the destination that they were sent to.
KEPT, REACHES = "keeps a local copy", "delivered to the topic's subscribers"


@dataclass(frozen=True, slots=True)
class RouteStep:
    """A step of a route: the definition that applied at a destination, its target, and the result."""

    at: Destination
    target: Destination
    depth: int
    outcome: bool | None
    definition: VirtualDestination | None  #: None: a binding or a subscription, which `by` names
    by: str
    selector: str  #: as its client wrote it
    clause: ClauseExplanation | None  #: why the selector has its value
    exists: bool

    @property
    def is_local(self) -> bool:
        """Return whether the step concerns the source destination itself."""
        return self.at == self.target

    @property
    def creates_target(self) -> bool:
        """Return whether sending the message would create the target."""
        return not self.exists and bool(self.outcome) and not self.is_local

    @property
    def result(self) -> str:
        """Describe the result of the step."""
        match self.definition, self.outcome:
            case (CompositeDestination(), True) if self.is_local:
                return KEPT if self.at.is_queue else REACHES
            case (CompositeDestination(), _) if self.is_local:
                return "keeps no local copy"
            case (VirtualTopic(), _) if self.is_local:
                return REACHES
            case VirtualTopic(selector_aware=True), False:
                return "not copied: no current or cached consumer selector matches"
            case VirtualTopic(), True:
                return "copied"
            case VirtualTopic(), _:
                return "not copied: the filter of its binding does not match"
            case MirroredQueue(), _:
                return "mirrored"
            case _, True:
                return "forwarded" if self.definition else "stored"
            case _, None:
                return "not forwarded: the selector is unknown"
        return "not forwarded: the selector is false" if self.selector else "not stored: no read permission"


@dataclass(frozen=True, slots=True)
class RouteTarget:
    """A destination that receives a copy."""

    destination: Destination
    seen_as: Destination  #: the destination that its consumers see
    exists: bool
    sentence: str

    @property
    def has_page(self) -> bool:
        """Return whether a page shows the destination."""
        return self.exists and self.seen_as == self.destination and not self.destination.is_temporary


@dataclass(frozen=True, slots=True)
class RoutePreview:
    """The route that a message would take, without what the user must not see."""

    steps: list[RouteStep]
    targets: list[RouteTarget]
    hidden_steps: int  #: number of steps left out
    problem: str
    hidden_targets: int = 0  #: number of targets left out: the user must not know them

    @property
    def target_count(self) -> int:
        """Return the number of targets, hidden ones included."""
        return len(self.targets) + self.hidden_targets

    def reaches(self, destination: Destination) -> bool:
        """Return whether a destination receives a copy."""
        return any(destination in (each.destination, each.seen_as) for each in self.targets)


def build_preview(
    told: Mapping[str, Any], sample: SampleMessage, definitions: Definitions, stats: Stats
) -> RoutePreview:
    """Build a preview from the route that a node reports, with the reasons."""
    rules = {each.id: each for each in definitions.virtual_destinations}
    steps = [_step(each, rules, sample, stats) for each in told["hops"]]
    places = [_route_target(Destination.parse(at), Destination.parse(seen), stats) for at, seen in told["places"]]
    return RoutePreview(steps, places, told["untold"], told["problem"], told.get("unnamed", 0))


def _step(
    hop: Mapping[str, Any], rules: Mapping[str, VirtualDestination], sample: SampleMessage, stats: Stats
) -> RouteStep:
    rule, target = rules.get(hop["definition"]), Destination.parse(hop["target"])
    selector = hop["selector"] or ""
    is_strict = isinstance(rule, CompositeDestination) and rule.strict
    return RouteStep(
        Destination.parse(hop["at"]), target, hop["depth"], hop["outcome"], rule,
        f"{label_of(rule)} {title_of(rule)}" if rule else _definition_name(hop["definition"]),
        condition_of(selector), explain_selector(selector, sample, hop["seen"], is_strict) if selector else None,
        target in stats,
    )  # fmt: skip


def _definition_name(definition: str) -> str:
    """Name a binding or subscription; a hidden definition without its name."""
    return definition if definition.partition(":")[0] not in KINDS else "a hidden definition"


def explain_selector(
    selector: str, sample: SampleMessage, places: Mapping[str, str] | None = None, strict: bool = False
) -> ClauseExplanation | None:
    """Explain the value of a selector; None for one that is invalid."""
    try:
        return explain(compile_selector(selector, strict), sample.selector_view(places))
    except RequestRefused:
        return None


def _route_target(destination: Destination, seen_as: Destination, stats: Stats) -> RouteTarget:
    known = stats.get(seen_as) or stats.get(destination)
    if known is None:
        if destination.is_queue:
            return RouteTarget(destination, seen_as, exists=False, sentence="would be created")
        return RouteTarget(destination, seen_as, exists=False, sentence="no subscribers, message is discarded")
    if destination.is_queue:
        sentence = (
            pluralize_count(known.ConsumerCount, "consumer")
            if known.ConsumerCount
            else "no consumers, message is stored"
        )
        return RouteTarget(destination, seen_as, exists=True, sentence=sentence)
    readers = known.ConsumerCount
    sentence = pluralize_count(readers, "subscriber") if readers else "no subscribers, message is discarded"
    return RouteTarget(destination, seen_as, exists=True, sentence=sentence)


# -- reasons


def explain_missing(
    wanted: Destination, found: RoutePreview, start: Destination, definitions: Definitions
) -> list[str]:
    """Explain in sentences why `wanted` does not receive the message, or say that it does."""
    if found.reaches(wanted):
        return [f"A copy is delivered to {wanted.name}."]
    return list(_explain_missing(wanted, found, start, definitions, seen=set()))


def _decisive_clause(clause: ClauseExplanation) -> ClauseExplanation:
    """Return the innermost clause that decides the value of the whole."""
    for each in clause.clauses:
        if each.value is clause.value:
            return _decisive_clause(each)
    return clause


def _explain_missing(
    wanted: Destination, found: RoutePreview, start: Destination, definitions: Definitions, seen: set[Destination]
) -> Iterator[str]:
    seen.add(wanted)
    tried = [each for each in found.steps if each.target == wanted and each.outcome is not True]
    for step in tried:
        reason = f": {_decisive_clause(step.clause).reason}" if step.clause else ""
        yield f"At {step.at.name}, {step.by}: {step.result}{reason}."
    if tried:
        return
    feeds = feeds_into(wanted, definitions)
    if not feeds:
        yield (
            f"No definition copies or forwards to {wanted.name}. It receives only messages sent to this {wanted.kind},"
            f" and this message is sent to {start.name}."
        )
    for feed in feeds:
        rule = f"{label_of(feed.definition)} {title_of(feed.definition)}"
        if feed.source == start or any(step.target == feed.source and step.outcome for step in found.steps):
            yield (
                f"{rule} copies from {feed.source.name}, but {wanted.name} does not exist. Its first consumer"
                " creates it."
            )
            continue
        yield f"{rule} copies from {feed.source.name}, which does not receive this message."
        if feed.source not in seen:
            yield from _explain_missing(feed.source, found, start, definitions, seen)
