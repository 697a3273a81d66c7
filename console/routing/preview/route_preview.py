"""Preview: the way a message would take, step by step, and why it does not come to a place. Pure."""

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
from brokerapp.model.stats_records import DestinationStats
from brokerapp.selectors import compile_selector
from brokerapp.selectors.explain import ClauseExplanation, explain
from console.routing.definitions.definition_values import label_of, title_of
from console.routing.map.graph import feeds_into
from console.routing.preview.sample_message import SampleMessage
from console.ui.formatting.number_format import pluralize_count

Stats = Mapping[Destination, DestinationStats]


#: What becomes at a place of its own messages: queues keep, topics do not.
KEPT, REACHES = "keeps a copy itself", "reaches the topic's own subscribers"


@dataclass(frozen=True, slots=True)
class RouteStep:
    """One hop: what applied at a destination, to where, and what came of it."""

    at: Destination
    target: Destination
    depth: int
    outcome: bool | None
    definition: VirtualDestination | None  #: None: a binding or a named subscription, which `by` names
    by: str
    selector: str
    clause: ClauseExplanation | None  #: why the selector said so
    exists: bool

    @property
    def is_local(self) -> bool:
        """Whether it is about what stays where it is."""
        return self.at == self.target

    @property
    def result(self) -> str:
        """What came of it, in words."""
        match self.definition, self.outcome:
            case (CompositeDestination(), True) if self.is_local:
                return KEPT if self.at.is_queue else REACHES
            case (CompositeDestination(), _) if self.is_local:
                return "keeps nothing itself"
            case (VirtualTopic(), _) if self.is_local:
                return REACHES
            case VirtualTopic(selector_aware=True), False:
                return "not copied: no consumer of it, present or remembered, wants it"
            case VirtualTopic(), True:
                return "copied"
            case VirtualTopic(), _:
                return "not copied: the filter of its binding says no"
            case MirroredQueue(), _:
                return "mirrored"
            case _, True:
                return "forwarded" if self.definition else "kept for it"
            case _, None:
                return "not forwarded: the selector is unknown"
        return "not forwarded: the selector is false" if self.selector else "not kept: it may not read this"


@dataclass(frozen=True, slots=True)
class RouteTarget:
    """Where a copy comes to in the end."""

    destination: Destination
    seen_as: Destination  #: the destination its consumers see
    exists: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class RoutePreview:
    """All of a message's way."""

    steps: list[RouteStep]
    targets: list[RouteTarget]
    hidden_steps: int  #: steps that are left out
    problem: str
    hidden_targets: int = 0  #: places that are left out, as who asks may not know of them

    def reaches(self, destination: Destination) -> bool:
        """Whether a copy comes there."""
        return any(destination in (each.destination, each.seen_as) for each in self.targets)


def build_preview(
    told: Mapping[str, Any], specimen: SampleMessage, definitions: Definitions, stats: Stats
) -> RoutePreview:
    """What a node told of a message's way, with the reasons."""
    rules = {each.id: each for each in definitions.virtual_destinations}
    steps = [_step(each, rules, specimen, stats) for each in told["hops"]]
    places = [_route_target(Destination.parse(at), Destination.parse(seen), stats) for at, seen in told["places"]]
    return RoutePreview(steps, places, told["untold"], told["problem"], told.get("unnamed", 0))


def _step(
    hop: Mapping[str, Any], rules: Mapping[str, VirtualDestination], specimen: SampleMessage, stats: Stats
) -> RouteStep:
    rule, target = rules.get(hop["definition"]), Destination.parse(hop["target"])
    selector = hop["selector"] or ""
    is_strict = isinstance(rule, CompositeDestination) and rule.strict
    return RouteStep(
        Destination.parse(hop["at"]), target, hop["depth"], hop["outcome"], rule,
        f"{label_of(rule)} {title_of(rule)}" if rule else _definition_name(hop["definition"]),
        selector, explain_selector(selector, specimen, hop["seen"], is_strict) if selector else None, target in stats,
    )  # fmt: skip


def _definition_name(definition: str) -> str:
    """A binding or named subscription by its name; a definition that who asks may not know of without one."""
    return definition if definition.partition(":")[0] not in KINDS else "a definition that you may not see"


def explain_selector(
    selector: str, specimen: SampleMessage, places: Mapping[str, str] | None = None, strict: bool = False
) -> ClauseExplanation | None:
    """Why a selector says what it says; None for one that does not parse."""
    try:
        return explain(compile_selector(selector, strict), specimen.selector_view(places))
    except RequestRefused:
        return None


def _route_target(destination: Destination, seen_as: Destination, stats: Stats) -> RouteTarget:
    known = stats.get(seen_as) or stats.get(destination)
    if known is None:
        if destination.is_queue:
            return RouteTarget(destination, seen_as, exists=False, sentence="would be created")
        return RouteTarget(destination, seen_as, exists=False, sentence="nobody has subscribed: nothing is kept")
    if destination.is_queue:
        sentence = (
            pluralize_count(known.ConsumerCount, "consumer") if known.ConsumerCount else "nobody consumes: it waits"
        )
        return RouteTarget(destination, seen_as, exists=True, sentence=sentence)
    readers = known.ConsumerCount
    sentence = pluralize_count(readers, "subscriber") if readers else "nobody has subscribed: nothing is kept"
    return RouteTarget(destination, seen_as, exists=True, sentence=sentence)


# -- why not


def explain_missing(
    wanted: Destination, found: RoutePreview, start: Destination, definitions: Definitions
) -> list[str]:
    """Sentences on why the message does not come to `wanted`; where it does, one that says so."""
    if found.reaches(wanted):
        return [f"It does: a copy comes to {wanted.name}."]
    return list(_explain_missing(wanted, found, start, definitions, seen=set()))


def _decisive_clause(clause: ClauseExplanation) -> ClauseExplanation:
    """The innermost clause that makes the whole what it is."""
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
            f"No definition feeds {wanted.name}: only what is sent to this {wanted.kind} itself gets there, and this"
            f" message is sent to {start.name}."
        )
    for feed in feeds:
        rule = f"{label_of(feed.definition)} {title_of(feed.definition)}"
        if feed.source == start or any(step.target == feed.source and step.outcome for step in found.steps):
            yield f"{rule} would feed it from {feed.source.name}, but there is no {wanted.name}: a consumer makes it."
            continue
        yield f"{rule} feeds it from {feed.source.name}, where this message does not come to."
        if feed.source not in seen:
            yield from _explain_missing(feed.source, found, start, definitions, seen)
