"""Find issues in a snapshot, and build the status line of the overview. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from brokerapp.cluster.status import ClusterStatus, MemberStatus
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats
from brokerapp.monitoring.node_metrics import watched_disk
from brokerapp.store.server.disk_space import DiskSpace
from brokerapp.store.server.durability import durability_loss, replica_shortage, restore_notice, rollback_notice
from console.access.roles import Sees, everything
from console.broker.snapshot import BrokerSnapshot
from console.topology.broken_links import find_broken_links
from console.ui.formatting.number_format import format_duration, format_integer, format_rate, pluralize_count

#: A queue whose depth is worth a word grows when it is deeper than minutes ago by this share, and by so many messages.
MIN_DEPTH = 100
GROWTH, MORE = 0.05, 20
#: What a dead letter weighs where findings are ordered by harm, in messages that wait: a message that waits is consumed
#: when its consumer comes, but nothing becomes of a dead letter before a person decides.
DEAD_LETTER_WEIGHT = 10
#: Seconds that must lie between two depths to be compared. Until then rates tell: more comes in than goes out by this.
MIN_SPAN = 30.0
RATE_GROWTH = 1.1


class HealthUrgency(IntEnum):
    """Urgency of an issue: for information, to be checked, or to be fixed now."""

    NOTE = 1
    LOOK = 2
    ACT = 3


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """One thing that deserves a look."""

    destination: Destination
    urgency: HealthUrgency
    label: str  #: a word or two for the badge
    sentence: str
    harm: int  #: messages affected; see DEAD_LETTER_WEIGHT


#: What was found last, and in which picture.
_last: tuple[BrokerSnapshot, list[HealthFinding]] = (BrokerSnapshot(), [])


def findings(picture: BrokerSnapshot, sees: Sees = everything) -> list[HealthFinding]:
    """Find the issues of visible queues, those with the most affected messages first.

    It is looked for once a picture, however many tabs show it: with thousands of queues it takes a while.
    """
    global _last
    if (last := _last)[0] is not picture:
        found = [finding for stats in picture.of_kind(DestinationKind.QUEUE) for finding in findings_of(stats, picture)]
        found.sort(key=lambda each: (-each.harm, -each.urgency, each.destination.name))
        last = _last = (picture, found)
    return last[1] if sees is everything else [each for each in last[1] if sees(each.destination)]


def findings_of(stats: DestinationStats, picture: BrokerSnapshot) -> list[HealthFinding]:
    """Find the issues of one queue."""
    return list(_of(stats, picture))


def _of(stats: DestinationStats, picture: BrokerSnapshot) -> Iterator[HealthFinding]:
    destination, depth = stats.destination, stats.QueueSize
    if depth == 0:
        return
    if stats.DLQ:
        sentence = pluralize_count(depth, "dead-lettered message")
        yield HealthFinding(destination, HealthUrgency.ACT, "Dead letters", sentence, DEAD_LETTER_WEIGHT * depth)
        return
    if stats.Paused:
        yield HealthFinding(
            destination,
            HealthUrgency.LOOK,
            "Paused",
            f"{pluralize_count(depth, 'message')} waiting while paused",
            depth,
        )
        return
    if stats.ConsumerCount == 0:
        sentence = f"{pluralize_count(depth, 'message')} without consumers"
        yield HealthFinding(destination, HealthUrgency.LOOK, "No consumers", sentence, depth)
        return
    if depth >= MIN_DEPTH and (growth := _growth(stats, picture)):
        yield HealthFinding(
            destination, HealthUrgency.NOTE, "Growing", f"{pluralize_count(depth, 'message')}, {growth}", depth
        )


def _growth(stats: DestinationStats, picture: BrokerSnapshot) -> str:
    """Describe the growth of a queue; "" if it does not grow."""
    # A queue that a look has not is not one that was empty then: the numbers of a node that starts come after it.
    oldest = next((each for each in picture.depths if stats.destination in each.of), None)
    if oldest is not None and picture.at - oldest.at >= MIN_SPAN:
        before = oldest.of[stats.destination]
        more = stats.QueueSize - before
        ago = format_duration(picture.at - oldest.at)
        return f"{format_integer(more)} more than {ago} ago" if more >= MORE and more > before * GROWTH else ""
    rates = picture.rates(stats.destination)
    is_more = rates.enqueue > rates.dequeue * RATE_GROWTH
    return (
        f"enqueue rate {format_rate(rates.enqueue)}, dequeue rate {format_rate(rates.dequeue)} msg/s" if is_more else ""
    )


def low_disk(picture: BrokerSnapshot) -> DiskSpace | None:
    """Return the disk of a store that accepts no messages for want of space; None: each does."""
    disks = [disk for disk in map(watched_disk, picture.nodes) if disk is not None]
    return next((disk for disk in disks if disk.is_low), None)


@dataclass(frozen=True, slots=True)
class HealthSummary:
    """The state of the broker in one sentence."""

    state: str  #: good, look, act, or lost
    sentence: str


def summarize(picture: BrokerSnapshot, found: list[HealthFinding]) -> HealthSummary:
    """Summarize the health of the broker in one sentence; another one tells of a recent restore."""
    summary = _summarize(picture, found)
    restored = next(filter(None, (restore_notice(node.store, node.seen_ms) for node in picture.nodes)), "")
    if restored and summary.state in {"good", "look"}:
        return HealthSummary(summary.state, f"{summary.sentence} {restored}")
    return summary


def _summarize(picture: BrokerSnapshot, found: list[HealthFinding]) -> HealthSummary:
    if (wrong := _of_nodes(picture)) is not None:
        return wrong
    totals, cluster = picture.totals, picture.cluster
    if any(each.urgency is HealthUrgency.ACT for each in found):
        return HealthSummary("act", f"{pluralize_count(totals.dead, 'dead-lettered message')}.")
    if cluster is not None and cluster.missing:
        return HealthSummary("look", f"Cluster {_named(cluster.missing)} unreachable.")
    if broken := find_broken_links(picture.nodes):
        one, *more = broken
        others = f" {pluralize_count(len(more), 'other bridge')} down." if more else ""
        return HealthSummary(
            "look", f"The bridge of connector {one.connector} to {one.remote} is down: {one.why}.{others}"
        )
    if lost := next(
        filter(None, (durability_loss(node.store) for node in picture.nodes)), ""
    ):  # it lasts: nothing hides behind it
        return HealthSummary("look", f"Not durable: {lost}.")
    if not picture.stats:
        return HealthSummary("good", "Healthy. No messages yet.")
    if look := sum(each.urgency is HealthUrgency.LOOK for each in found):
        return HealthSummary("look", f"{pluralize_count(look, 'queue')} with messages and without active consumers.")
    if found:
        return HealthSummary(
            "look", f"{pluralize_count(len(found), 'queue')} growing: messages arrive faster than they are consumed."
        )
    if totals.pending:
        return HealthSummary("good", f"Healthy. {pluralize_count(totals.pending, 'message')} in queues.")
    return HealthSummary("good", "Healthy. All queues are empty.")


def _of_nodes(picture: BrokerSnapshot) -> HealthSummary | None:
    """Return the problem of the broker itself; None without any."""
    if picture.trouble:
        return HealthSummary("lost", f"The broker is not responding. {picture.trouble}")
    if not picture.nodes:
        return HealthSummary(
            "act", "No broker node is running. Stored messages are safe, but none are accepted or delivered."
        )
    if (cluster := picture.cluster) is not None and not cluster.may_change:
        return HealthSummary("act", _without_master(cluster))
    if (full := low_disk(picture)) is not None:
        return HealthSummary("act", f"Sends are blocked: {full.shortage}.")
    if few := next(filter(None, (replica_shortage(node.store) for node in picture.nodes)), ""):
        return HealthSummary("act", f"{few[0].upper()}{few[1:]}.")
    lost = next(filter(None, (rollback_notice(node.store, node.seen_ms) for node in picture.nodes)), "")
    return HealthSummary("act", lost) if lost else None


def _without_master(cluster: ClusterStatus) -> str:
    if cluster.suspended:
        return f"{cluster.broker} is waiting for the cluster master {cluster.master}. Clients cannot connect."
    return f"Cluster master {cluster.master} unreachable. Messages flow, but destinations cannot be created or deleted."


def _named(members: Sequence[MemberStatus]) -> str:
    names = [each.name for each in members]
    return f"broker {names[0]}" if len(names) == 1 else f"brokers {', '.join(names[:-1])} and {names[-1]}"
