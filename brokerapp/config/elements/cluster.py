"""Reads and writes the attributes of `<broker>` for its cluster: `sluice:clusterBrokers` and others."""

from __future__ import annotations

from lxml import etree

from brokerapp.cluster.settings import RETRY_MS, ClusterMember, ClusterSettings, check, read_members, write_members
from brokerapp.config.parsing.broker_config import ImportOutcome
from brokerapp.config.parsing.document import EXTENSION, Element
from brokerapp.errors import ConfigurationRefused

_BROKERS, _MASTER, _RETRY = "clusterBrokers", "clusterMaster", "clusterRetry"
_USER, _PASSWORD = "clusterUser", "clusterPassword"


def read_cluster(broker: Element, name: str | None) -> ClusterSettings | None:
    """Return the cluster that a broker of this name is in, or None. Raises ConfigurationRefused."""
    given = _take(broker, _BROKERS)
    master, user, password = (_take(broker, each) for each in (_MASTER, _USER, _PASSWORD))
    retry = broker.take_integer(EXTENSION + _RETRY)
    if given is None:
        if master is not None:
            broker.note(ImportOutcome.IGNORED, f"{_BROKERS} is missing: the broker is not part of a cluster", _MASTER)
        return None
    terms = ClusterSettings(
        _members(broker, given), (master or "").strip(), user, password, RETRY_MS if retry is None else retry
    )
    if name is not None:
        try:
            check(terms, name)
        except ConfigurationRefused as wrong:
            raise broker.refused(str(wrong)) from None
    broker.note(ImportOutcome.TAKEN, ", ".join(map(str, terms.members)), _BROKERS)
    if terms.master:
        broker.note(ImportOutcome.TAKEN, terms.master, _MASTER)
    return terms


def _members(broker: Element, given: str) -> tuple[ClusterMember, ...]:
    try:
        return read_members(given)
    except ConfigurationRefused as wrong:
        raise broker.refused(str(wrong)) from None


def _take(broker: Element, attribute: str) -> str | None:
    return broker.take(EXTENSION + attribute)


def write_cluster(broker: etree._Element, terms: ClusterSettings) -> None:
    """Put its attributes into `<broker>`."""
    said = {_BROKERS: write_members(terms.members), _MASTER: terms.master, _USER: terms.user, _PASSWORD: terms.password}
    for name, value in said.items():
        if value:
            broker.set(EXTENSION + name, value)
    if terms.retry_ms != RETRY_MS:
        broker.set(f"{EXTENSION}{_RETRY}", str(terms.retry_ms))
