"""Explain whether a bridge forwards a message: each condition, in the order of evaluation. Pure."""

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
    """The message in question; `headers` None: only its destination is known."""

    destination: Destination
    headers: Mapping[str, str] | None = None
    path: Path = ()  #: brokers that it has passed


@dataclass(frozen=True, slots=True)
class BridgeReason:
    """A condition of forwarding; `allows` is None if it is unknown or does not decide."""

    allows: bool | None
    sentence: str
    clause: ClauseExplanation | None = None


def bridge_reasons(
    asked: BridgeQuestion, terms: ConnectorOptions, way: BridgeConnectionStats, demand: Sequence[DemandStats], own: int
) -> list[BridgeReason]:
    """Return the conditions up to the first that prevents forwarding. `own`: consumers of its queue on this broker."""
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
    yield BridgeReason(True, f"It is forwarded to {way.remote} when it reaches the head of the queue.")


def _connection_reason(terms: ConnectorOptions, way: BridgeConnectionStats) -> BridgeReason:
    if way.state is BridgeConnectionState.CONNECTED:
        return BridgeReason(True, f"The bridge to {way.remote} is connected over {way.protocol or 'STOMP'}.")
    if way.state is BridgeConnectionState.STOPPED:
        return BridgeReason(False, f"The connector {terms.name} is stopped. Messages stay in the queue.")
    why = f": {way.last_error}" if way.last_error else ""
    return BridgeReason(False, f"Not connected ({way.state}){why}. Messages stay in the queue.")


def _filter_reasons(target: Destination, terms: ConnectorOptions) -> Iterator[BridgeReason]:
    if target.name.startswith((_ADVISORIES, RECORD_QUEUE_PREFIX)):
        yield BridgeReason(False, "Advisories and internal records of bridges are never forwarded.")
        return
    if target.is_temporary and not terms.bridge_temp_destinations:
        yield BridgeReason(False, "Temporary destinations are not forwarded (bridgeTempDestinations=false).")
        return
    static = _pattern(target, terms.statically_included)
    if (excluded := _pattern(target, terms.excluded)) is not None and not target.is_temporary:
        if static is None or terms.exclude_static:
            yield BridgeReason(False, f"Excluded by excludedDestinations: {excluded}.")
            return
        yield BridgeReason(
            True, f"excludedDestinations contains {excluded}, overridden by staticallyIncludedDestinations: {static}."
        )
        return
    if static is not None:
        yield BridgeReason(True, f"Always forwarded by staticallyIncludedDestinations: {static}.")
    elif terms.static_bridge:
        yield BridgeReason(False, "Not in staticallyIncludedDestinations (staticBridge=true).")
    elif terms.dynamically_included:
        dynamic = _pattern(target, terms.dynamically_included)
        listed = ", ".join(map(str, terms.dynamically_included))
        if dynamic is None:
            yield BridgeReason(False, f"Not in dynamicallyIncludedDestinations: {listed}.")
        else:
            yield BridgeReason(True, f"Included by dynamicallyIncludedDestinations: {dynamic}.")
    else:
        yield BridgeReason(True, "No list excludes it. It is forwarded if there is demand.")


def _pattern(target: Destination, patterns: Sequence[Destination]) -> Destination | None:
    """Return the first pattern that matches the destination."""
    return next((each for each in patterns if each.kind is target.kind and matches(each.name, target.name)), None)


def _is_for(demand: DemandStats, target: Destination) -> bool:
    wanted = Destination.parse(demand.destination)
    return wanted.kind is target.kind and matches(wanted.name, target.name)


def _demand_reason(
    target: Destination, terms: ConnectorOptions, remote: str, wanted: Sequence[DemandStats]
) -> BridgeReason:
    if not wanted:
        durable = " Offline durable subscriptions are no demand (dynamicOnly=true)." * terms.dynamic_only
        bridges = pluralize_count(terms.consumer_ttl, "bridge")
        is_limited = terms.consumer_ttl != UNLIMITED
        far = f" Consumers count as demand up to a distance of {bridges} (consumerTTL)." if is_limited else ""
        return BridgeReason(False, f"No demand: {remote} reports no consumers of {target}.{durable}{far}")
    if any(each.static for each in wanted):
        return BridgeReason(True, "Static subscription, independent of consumers.")
    consumers = sum(len(each.consumers) for each in wanted)
    return BridgeReason(True, f"Demand: {pluralize_count(consumers, 'consumer')} on {remote} or behind it.")


def _path_reasons(asked: BridgeQuestion, terms: ConnectorOptions, remote: str) -> Iterator[BridgeReason]:
    if asked.headers is None:
        yield BridgeReason(None, "Unknown without a message number: the brokers that it has passed.")
        return
    if not asked.path:
        yield BridgeReason(True, "It was sent to this broker and has not crossed a bridge.")
        return
    way = ", ".join(asked.path)
    if remote in asked.path:
        yield BridgeReason(
            False,
            f"It came from {remote} (via {way}) and is not sent back, unless a policy has replayWhenNoConsumers.",
        )
        return
    ttl = terms.message_ttl
    if ttl != UNLIMITED and len(asked.path) >= ttl:
        crossed = pluralize_count(len(asked.path), "bridge")
        yield BridgeReason(False, f"It has crossed {crossed} (via {way}). The limit is {ttl} (messageTTL).")
        return
    yield BridgeReason(
        True, f"It has crossed {pluralize_count(len(asked.path), 'bridge')} (via {way}), within its limit."
    )


def _selector_reasons(asked: BridgeQuestion, wanted: Sequence[DemandStats]) -> Iterator[BridgeReason]:
    selectors = [each.selector for each in wanted]
    if not all(selectors):
        return
    if asked.headers is None:
        yield BridgeReason(None, "Unknown without a message number: whether a consumer's selector matches.")
        return
    clauses = [clause for each in selectors if (clause := _clause(each, asked.headers)) is not None]
    taken = next((each for each in clauses if each.value is True), None)
    if taken is not None:
        yield BridgeReason(True, "A consumer's selector matches.", taken)
        return
    for each in clauses[:-1]:
        yield BridgeReason(None, "The selector of one consumer does not match.", each)
    if clauses:
        yield BridgeReason(False, "No consumer's selector matches.", clauses[-1])


def _clause(selector: str, headers: Mapping[str, str]) -> ClauseExplanation | None:
    try:
        return explain(compile_selector(selector), dict(headers))
    except RequestRefused:
        return None


def _local_consumer_reasons(target: Destination, wanted: Sequence[DemandStats], own: int) -> Iterator[BridgeReason]:
    if target.is_queue and own and all(each.priority < 0 for each in wanted):
        consumers = f"{pluralize_count(own, 'local consumer')} of the queue {'has' if own == 1 else 'have'}"
        yield BridgeReason(None, f"{consumers} priority over the bridge (decreaseNetworkConsumerPriority).")
