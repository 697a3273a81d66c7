"""Why a message does not cross a bridge: each thing that decides about it, in the order of deciding. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from brokerapp.engine.routing.destination_trie import matches
from brokerapp.errors import RequestRefused
from brokerapp.model.broker_path import RECORD_QUEUE_PREFIX, UNLIMITED, Path
from brokerapp.model.destination import Destination
from brokerapp.model.network_stats import BridgeConnectionState, BridgeConnectionStats, DemandStats
from brokerapp.network.options.options import ConnectorOptions
from brokerapp.selectors import compile_selector
from brokerapp.selectors.explain import ClauseExplanation, explain
from console.ui.formatting.number_format import pluralize_count

_ADVISORIES = "ActiveMQ.Advisory."


@dataclass(frozen=True, slots=True)
class BridgeQuestion:
    """The message that is asked about; `headers` None: only where it is sent to is known."""

    destination: Destination
    headers: Mapping[str, str] | None = None
    path: Path = ()  #: brokers it has crossed


@dataclass(frozen=True, slots=True)
class BridgeReason:
    """One thing that decides; `lets` is None where it cannot be told."""

    allows: bool | None
    sentence: str
    clause: ClauseExplanation | None = None


def bridge_reasons(
    asked: BridgeQuestion, terms: ConnectorOptions, way: BridgeConnectionStats, demand: Sequence[DemandStats], own: int
) -> list[BridgeReason]:
    """What decides, up to the first thing that keeps the message here. `own`: consumers of its queue at this broker."""
    found: list[BridgeReason] = []
    for each in _iterate_reasons(asked, terms, way, demand, own):
        found.append(each)
        if each.allows is False:
            break
    return found


def _iterate_reasons(
    asked: BridgeQuestion, terms: ConnectorOptions, way: BridgeConnectionStats, demand: Sequence[DemandStats], own: int
) -> Iterator[BridgeReason]:  # fmt: skip
    yield _connection_reason(terms, way)
    yield from _filter_reasons(asked.destination, terms)
    wanted = [each for each in demand if _is_for(each, asked.destination)]
    yield _demand_reason(asked.destination, terms, way.remote, wanted)
    yield from _path_reasons(asked, terms, way.remote)
    yield from _selector_reasons(asked, wanted)
    yield from _local_consumer_reasons(asked.destination, wanted, own)
    yield BridgeReason(True, f"Nothing keeps it here: it goes to {way.remote} when its turn in the queue comes.")


def _connection_reason(terms: ConnectorOptions, way: BridgeConnectionStats) -> BridgeReason:
    if way.state is BridgeConnectionState.CONNECTED:
        return BridgeReason(True, f"The bridge to {way.remote} is there.")
    if way.state is BridgeConnectionState.STOPPED:
        return BridgeReason(False, f"The connector {terms.name} is stopped: what is for others waits here.")
    why = f": {way.last_error}" if way.last_error else ""
    return BridgeReason(False, f"There is no connection ({way.state}){why}. What is for others waits here.")


def _filter_reasons(target: Destination, terms: ConnectorOptions) -> Iterator[BridgeReason]:
    if target.name.startswith((_ADVISORIES, RECORD_QUEUE_PREFIX)):
        yield BridgeReason(False, "Advisories, and what bridges keep for themselves, never cross.")
        return
    if target.is_temporary and not terms.bridge_temp_destinations:
        yield BridgeReason(False, "It is a temporary destination, and bridgeTempDestinations is false.")
        return
    static = _pattern(target, terms.statically_included)
    if (excluded := _pattern(target, terms.excluded)) is not None and not target.is_temporary:
        if static is None or terms.exclude_static:
            yield BridgeReason(False, f"excludedDestinations has {excluded}.")
            return
        yield BridgeReason(
            True, f"excludedDestinations has {excluded}, but staticallyIncludedDestinations has {static}."
        )
        return
    if static is not None:
        yield BridgeReason(True, f"staticallyIncludedDestinations has {static}: it crosses whoever consumes.")
    elif terms.static_bridge:
        yield BridgeReason(False, "staticBridge is true, and staticallyIncludedDestinations does not have it.")
    elif terms.dynamically_included:
        dynamic = _pattern(target, terms.dynamically_included)
        listed = ", ".join(map(str, terms.dynamically_included))
        if dynamic is None:
            yield BridgeReason(False, f"dynamicallyIncludedDestinations has {listed}, and not this one.")
        else:
            yield BridgeReason(True, f"dynamicallyIncludedDestinations has {dynamic}.")
    else:
        yield BridgeReason(True, "No list leaves it out: every destination may cross for which there is demand.")


def _pattern(target: Destination, patterns: Sequence[Destination]) -> Destination | None:
    """The first of the patterns that names the destination."""
    return next((each for each in patterns if each.kind is target.kind and matches(each.name, target.name)), None)


def _is_for(demand: DemandStats, target: Destination) -> bool:
    wanted = Destination.parse(demand.destination)
    return wanted.kind is target.kind and matches(wanted.name, target.name)


def _demand_reason(
    target: Destination, terms: ConnectorOptions, remote: str, wanted: Sequence[DemandStats]
) -> BridgeReason:
    if not wanted:
        durable = " A durable subscription that nobody consumes is no demand: dynamicOnly is true." * terms.dynamic_only
        far = "" if terms.consumer_ttl == UNLIMITED else (
            f" Consumers of brokers behind it count up to {pluralize_count(terms.consumer_ttl, 'bridge')} away"
            " (consumerTTL)."
        )  # fmt: skip
        return BridgeReason(
            False, f"{remote} has told of no consumer of {target}: there is no demand for it.{durable}{far}"
        )
    if any(each.static for each in wanted):
        return BridgeReason(True, "It is wanted whoever consumes.")
    consumers = sum(len(each.consumers) for each in wanted)
    return BridgeReason(
        True,
        f"{pluralize_count(consumers, 'consumer')} at or behind {remote} {'wants' if consumers == 1 else 'want'} it.",
    )


def _path_reasons(asked: BridgeQuestion, terms: ConnectorOptions, remote: str) -> Iterator[BridgeReason]:
    if asked.headers is None:
        yield BridgeReason(None, "Which brokers it has crossed is not known without the message.")
        return
    if not asked.path:
        yield BridgeReason(True, "It was sent to this broker: it has crossed no bridge yet.")
        return
    way = ", ".join(asked.path)
    if remote in asked.path:
        yield BridgeReason(
            False,
            f"It came from {remote} (by {way}): it goes back only where a policy says replayWhenNoConsumers.",
        )
        return
    ttl = terms.message_ttl
    if ttl != UNLIMITED and len(asked.path) >= ttl:
        yield BridgeReason(
            False, f"It has crossed {pluralize_count(len(asked.path), 'bridge')} (by {way}), and messageTTL is {ttl}."
        )
        return
    yield BridgeReason(True, f"It has crossed {pluralize_count(len(asked.path), 'bridge')} (by {way}); it may go on.")


def _selector_reasons(asked: BridgeQuestion, wanted: Sequence[DemandStats]) -> Iterator[BridgeReason]:
    selectors = [each.selector for each in wanted]
    if not all(selectors):
        return
    if asked.headers is None:
        yield BridgeReason(None, "Whether the selectors of the consumers take it is not known without the message.")
        return
    clauses = [clause for each in selectors if (clause := _clause(each, asked.headers)) is not None]
    taken = next((each for each in clauses if each.value is True), None)
    if taken is not None:
        yield BridgeReason(True, "A consumer's selector takes it.", taken)
        return
    for each in clauses[:-1]:
        yield BridgeReason(None, "The selector of one consumer does not take it.", each)
    if clauses:
        yield BridgeReason(False, "No selector of the consumers there takes it.", clauses[-1])


def _clause(selector: str, headers: Mapping[str, str]) -> ClauseExplanation | None:
    try:
        return explain(compile_selector(selector), dict(headers))
    except RequestRefused:
        return None


def _local_consumer_reasons(target: Destination, wanted: Sequence[DemandStats], own: int) -> Iterator[BridgeReason]:
    if target.is_queue and own and all(each.priority < 0 for each in wanted):
        yield BridgeReason(
            None,
            f"{pluralize_count(own, 'consumer')} of the queue {'is' if own == 1 else 'are'} at this broker, "
            "and served first:"
            " the bridge consumes with a lower priority (decreaseNetworkConsumerPriority).",
        )
