"""Reads and writes `<subscriptionRecoveryPolicy>`: messages that a topic retains for retroactive consumers."""

from __future__ import annotations

from lxml import etree

from brokerapp.config.parsing.attributes import attribute_name, read_fields, write_fields
from brokerapp.config.parsing.broker_config import ImportOutcome
from brokerapp.config.parsing.document import Element
from brokerapp.model.definitions import RecoveryPolicy

TAG = "subscriptionRecoveryPolicy"

#: Element -> kind of policy, and the fields it has.
_POLICIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "noSubscriptionRecoveryPolicy": ("none", ()),
    "lastImageSubscriptionRecoveryPolicy": ("lastImage", ()),
    "fixedCountSubscriptionRecoveryPolicy": ("fixedCount", ("maximum_size",)),
    "fixedSizedSubscriptionRecoveryPolicy": ("fixedSized", ("maximum_size",)),
    "timedSubscriptionRecoveryPolicy": ("timed", ("recover_duration",)),
}
#: Keeps the last message sent with ActiveMQ.Retain, and what the policy in it keeps: here every topic does the former.
_RETAINED = "retainedMessageSubscriptionRecoveryPolicy"
#: Asks a Java class.
_QUERY = "queryBasedSubscriptionRecoveryPolicy"


def read_recovery(element: Element) -> RecoveryPolicy | None:
    """Read the policy in a `<subscriptionRecoveryPolicy>`, or in the `<wrapped>` of another one."""
    known = (*_POLICIES, _RETAINED, _QUERY)
    if len(element.children) != 1 or (policy := element.children[0]).tag not in known:
        raise element.refused(f"requires one of {', '.join(known)}")
    if policy.tag == _QUERY:
        policy.note(
            ImportOutcome.IGNORED,
            "query is a Java class and is not used: only messages with ActiveMQ.Retain are retained",
        )
        return None
    if policy.tag == _RETAINED:
        policy.note(ImportOutcome.ADAPTED, "every topic retains the last message with ActiveMQ.Retain")
        wrapped = policy.child("wrapped")
        return None if wrapped is None else read_recovery(wrapped)
    kind, names = _POLICIES[policy.tag]
    values = read_fields(policy, RecoveryPolicy, names)
    for name, value in values.items():
        if value < 1:
            raise policy.refused(f"{attribute_name(name)}={value} is less than 1")
    for name, _ in policy.rest():
        policy.note(ImportOutcome.IGNORED, "memory is limited per topic and per node", name)
    policy.note(ImportOutcome.TAKEN, kind)
    return RecoveryPolicy(kind, **values)


def write_recovery(policy: RecoveryPolicy) -> etree._Element:
    """Write `<subscriptionRecoveryPolicy>`."""
    element = etree.Element(TAG)
    tag, names = next((tag, names) for tag, (kind, names) in _POLICIES.items() if kind == policy.kind)
    etree.SubElement(element, tag, write_fields(policy, names))
    return element
