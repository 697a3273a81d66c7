"""Judging: looks at every rule once a step of the watch, keeps what is open in the database, and asks for what is to be
told. One process of all does it (console/metrics/sampling/sampler.py); what was open goes on after a restart.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from django.conf import settings
from django.db import close_old_connections, transaction

from brokerapp.connections.installation_tls import tls_stores
from brokerapp.errors import BrokerError, ConfigurationRefused
from brokerapp.model.destination import Destination
from brokerapp.model.time_series import FINE, DestinationPoint, unpack_broker_points, unpack_destination_points
from brokerapp.store.history_rings import BROKER_RING
from console.alerts.delivery import alert_delivery
from console.alerts.delivery.models import AlertFiring, AlertRule
from console.alerts.metrics import DESCRIPTIONS, LATELY_SECONDS, AlertMetric
from console.alerts.readings import (
    CAUSES,
    COUNTED_LATELY,
    OF_DESTINATION,
    OF_INSTALLATION,
    OF_OBJECTIVE,
    OF_PATTERN,
    MetricReadings,
)
from console.alerts.rules import (
    OBJECTIVE_PREFIX,
    AlertCondition,
    OpenSubject,
    evaluate_rule,
    sentence,
    subjects_of,
    transitions,
)
from console.backups.records.models import BackupRun
from console.broker.broker_sample import certificate_ends
from console.broker.gateway import gateway
from console.broker.rollups import last_consumers_left, rollups
from console.broker.snapshot import BrokerSnapshot
from console.metrics.charts_history import MAX_DESTINATIONS
from console.objectives.attainment import measure
from console.objectives.models import Objective
from console.traffic_ranges.comparisons import current_traffic

logger = logging.getLogger(__name__)

State = AlertFiring.State
#: Queues whose first message is looked up in a step: the deepest.
MAX_LOOKED_UP = 2_000
#: What certificates are named by that are the installation's own: where the console has it, and where it does not.
CONSOLE, OWN_CERTIFICATE = "console", "SLUICE_TLS_CERTIFICATE"
DAY_SECONDS = 24 * 60 * 60
#: Points of the history in the minutes over which some metrics count.
LATELY = LATELY_SECONDS // FINE.step + 1
#: Metrics of the broker itself that nobody tells while no node runs: only that none does.
NODE_METRICS = (
    frozenset(metric for metric, each in DESCRIPTIONS.items() if each.of_broker)
    - {AlertMetric.NODES}
    - OF_INSTALLATION.keys()
)
#: Seconds without a look after which what is counted over minutes is not known: more than another process takes to take
#: over the watch, and a busy machine to make up for a step.
MAX_GAP = 60
#: Days for which ended firings are kept.
KEPT_DAYS = 90


def evaluate(picture: BrokerSnapshot, now: float) -> None:
    """Judge all rules by a picture. A picture of a broker that does not answer says nothing."""
    close_old_connections()
    try:
        if not picture.trouble:
            rules = {row: rule_of(row) for row in AlertRule.objects.filter(is_on=True)}
            readings = _readings(picture, rules.values(), now) if rules else None
            for row, rule in rules.items():
                if rule.metric not in readings.unread:
                    _evaluate_rule(row, rule, readings)
            _end_orphans(now)
        alert_delivery.enqueue_due(datetime.fromtimestamp(now, UTC))
        _purge_old(now)
    finally:
        close_old_connections()


def rule_of(row: AlertRule) -> AlertCondition:
    """Return the rule that a row describes."""
    return AlertCondition(AlertMetric(row.metric), row.threshold, row.pattern, row.below, row.hold)


def _readings(picture: BrokerSnapshot, rules: Collection[AlertCondition], now: float) -> MetricReadings:
    """Read what the rules need beside the snapshot: one request for each kind of metric."""
    found: dict[str, Any] = {}
    unread: set[AlertMetric] = set() if picture.nodes else set(NODE_METRICS)
    if not picture.stats:  # a node that has just begun has told nothing yet
        unread |= set(OF_DESTINATION)
    for metrics, ask in _ASKED:
        asking = [rule for rule in rules if rule.metric in metrics]
        if not asking:
            continue
        try:
            found |= ask(picture, asking, now)
        except BrokerError as error:  # judged by the rest, and these by the next look
            logger.warning("alerts on %s are not judged for now: %s", ", ".join(sorted(metrics)), error)
            unread |= metrics
    return MetricReadings(now, picture, **found, unread=frozenset(unread))


def _ask_ages(picture: BrokerSnapshot, rules: Collection[AlertCondition], _now: float) -> dict[str, Any]:
    depths = {
        each.destination: each.QueueSize for rule in rules for each in subjects_of(rule, picture) if each.QueueSize
    }
    return {"oldest": first_times(sorted(depths, key=depths.__getitem__, reverse=True)[:MAX_LOOKED_UP])}


def _ask_counts(picture: BrokerSnapshot, rules: Collection[AlertCondition], now: float) -> dict[str, Any]:
    """Of all that moved lately and has a history; as long as there is room in that, nothing else did."""
    moved = gateway().run(gateway().admin.rings.last_points())
    lately = {name for name, at in moved.items() if at > now - LATELY_SECONDS}
    about = {each.destination for rule in rules for each in subjects_of(rule, picture)}
    recent = recent_points([each for each in about if str(each) in lately])
    stood_still = {each: () for each in about if str(each) in moved and str(each) not in lately}
    [kept] = gateway().run(gateway().admin.rings.read(FINE, [BROKER_RING], LATELY))
    return {
        "recent": {**stood_still, **recent},
        "has_all_points": len(moved) < MAX_DESTINATIONS,
        "watched": was_monitored([each.at for each in unpack_broker_points(kept)], now),
    }


def was_monitored(looks: Sequence[float], now: float) -> bool:
    """Return whether samples were taken without a gap over the time in which events are counted."""
    since = now - LATELY_SECONDS
    times = [since, *(each for each in looks if since < each <= now), now]
    return all(later - earlier <= MAX_GAP for earlier, later in pairwise(times))


def _ask_names(picture: BrokerSnapshot, _rules: Collection[AlertCondition], _now: float) -> dict[str, Any]:
    return {"named": gateway().run(gateway().admin.peers.named(list(picture.subscriptions)))}


def _ask_offline(_picture: BrokerSnapshot, _rules: Collection[AlertCondition], _now: float) -> dict[str, Any]:
    return {"offline": gateway().run(gateway().admin.peers.offline())}


def _ask_gone(_picture: BrokerSnapshot, _rules: Collection[AlertCondition], _now: float) -> dict[str, Any]:
    return {"gone": last_consumers_left(rollups())}


def _ask_traffic(_picture: BrokerSnapshot, _rules: Collection[AlertCondition], now: float) -> dict[str, Any]:
    return {"traffic": current_traffic(now)}


def _ask_objectives(_picture: BrokerSnapshot, _rules: Collection[AlertCondition], _now: float) -> dict[str, Any]:
    return {"objectives": {each.name: measure(each.target) for each in Objective.objects.all()}}


def _ask_backups(_picture: BrokerSnapshot, _rules: Collection[AlertCondition], _now: float) -> dict[str, Any]:
    failures = BackupRun.failures_since_success()
    last = failures.first()
    return {"failed_backups": failures.count(), "backup_failure": f"Last failure: {last.reason}" if last else ""}


def _ask_certificates(picture: BrokerSnapshot, _rules: Collection[AlertCondition], now: float) -> dict[str, Any]:
    ends = certificate_ends(picture.nodes)
    store = tls_stores(settings.SLUICE).key_store
    if store is not None:
        from brokerapp.connections.key_stores import read_certificate  # takes ten megabytes

        try:
            own = read_certificate(store).valid_until.timestamp()
        except (ConfigurationRefused, OSError) as error:  # those that nodes use are judged all the same
            logger.warning("the certificate of the installation cannot be judged: %s", error)
        else:
            # Its nodes show it, too, while they run: it has one name, whoever does.
            ends = {part: end for part, end in ends.items() if int(end) != int(own)}
            ends[CONSOLE if settings.SLUICE.console_tls else OWN_CERTIFICATE] = own
    return {"certificate_days": {part: max(0, int((end - now) // DAY_SECONDS)) for part, end in ends.items()}}


#: Which metrics need what is not in the picture, and who asks for it.
_ASKED: tuple[
    tuple[frozenset[AlertMetric], Callable[[BrokerSnapshot, Collection[AlertCondition], float], dict[str, Any]]], ...
] = (
    (frozenset({AlertMetric.OLDEST}), _ask_ages),
    (frozenset(COUNTED_LATELY), _ask_counts),
    (frozenset({AlertMetric.BACKLOG, AlertMetric.OFFLINE}), _ask_names),
    (frozenset({AlertMetric.OFFLINE}), _ask_offline),
    (frozenset({AlertMetric.CONSUMER_GONE}), _ask_gone),
    (frozenset(OF_PATTERN), _ask_traffic),
    (frozenset(OF_OBJECTIVE), _ask_objectives),
    (frozenset({AlertMetric.BACKUPS}), _ask_backups),
    (frozenset({AlertMetric.CERTIFICATE}), _ask_certificates),
)


def first_times(queues: list[Destination]) -> dict[Destination, int]:
    """Return the arrival of the first message of each queue, ms since the epoch."""
    return gateway().run(gateway().admin.peers.oldest(queues)) if queues else {}


def recent_points(queues: list[Destination]) -> dict[Destination, list[DestinationPoint]]:
    """Return the last minutes of each."""
    if not queues:
        return {}
    kept = gateway().run(gateway().admin.rings.read(FINE, list(map(str, queues)), LATELY))
    return {queue: unpack_destination_points(each) for queue, each in zip(queues, kept, strict=True)}


def _evaluate_rule(row: AlertRule, rule: AlertCondition, readings: MetricReadings) -> None:
    seen = evaluate_rule(rule, readings)
    breaking = seen.breaking
    now = datetime.fromtimestamp(readings.now, UTC)
    with transaction.atomic():
        firings = {each.subject: each for each in row.firings.exclude(state=State.ENDED)}
        known = {
            subject: OpenSubject(each.since.timestamp(), each.state == State.FIRING)
            for subject, each in firings.items()
        }
        step = transitions(rule, known, seen, readings.now)
        for subject in step.begin:
            firings[subject] = AlertFiring(
                rule=row, rule_name=row.name, subject=subject, since=now, worst=breaking[subject]
            )
        cause = CAUSES[rule.metric](readings) if rule.metric in CAUSES else ""
        for subject in breaking.keys() & firings.keys():
            firings[subject].topics = _topics_of(subject, readings)
            text = sentence(rule, subject, breaking[subject], readings.traffic.get(subject), cause)
            _update(row, rule, firings[subject], breaking[subject], text, now if subject in step.fire else None)
        for subject in step.end:
            _end(row, firings[subject], now)


def _topics_of(subject: str, readings: MetricReadings) -> list[str]:
    """Return the topics of a subscription, or the pattern of an objective: who may see one may see the alert."""
    if subject.startswith(OBJECTIVE_PREFIX):
        found = readings.objectives.get(subject.removeprefix(OBJECTIVE_PREFIX))
        return [str(found.target.destination)] if found else []
    named = readings.named.get(Destination.parse(subject)) if "://" in subject else None
    return [str(each) for each in named.topics] if named else []


def _update(
    row: AlertRule, rule: AlertCondition, firing: AlertFiring, value: float, text: str, fired: datetime | None
) -> None:
    worse = min if rule.below else max
    firing.value, firing.worst = value, worse(firing.worst, value)
    if fired is not None:
        firing.state, firing.fired = State.FIRING, fired
        firing.sentence = text
    elif firing.state == State.PENDING:
        firing.sentence = text
    firing.save()
    if fired is not None:
        logger.info("alert %s: %s", row.name, firing.sentence)
        alert_delivery.queue_notifications(row, firing, "fired", fired)


def _end(row: AlertRule | None, firing: AlertFiring, now: datetime, event: str = "ended") -> None:
    if firing.state == State.PENDING:
        firing.delete()  # it was over before anybody had to know
        return
    firing.state, firing.ended = State.ENDED, now
    firing.save(update_fields=["state", "ended"])
    if row is not None:
        alert_delivery.queue_notifications(row, firing, event, now)
    else:
        alert_delivery.queue_resolution(firing, event, now)


def _end_orphans(now: float) -> None:
    """End the alerts of rules that were deleted or disabled."""
    orphans = AlertFiring.objects.exclude(state=State.ENDED).exclude(rule__is_on=True)
    for firing in orphans.select_related("rule"):
        _end(firing.rule, firing, datetime.fromtimestamp(now, UTC), "off" if firing.rule else "deleted")


def _purge_old(now: float) -> None:
    if int(now) % 3600 < FINE.step:
        before = datetime.fromtimestamp(now, UTC) - timedelta(days=KEPT_DAYS)
        AlertFiring.objects.filter(state=State.ENDED, ended__lt=before).delete()
