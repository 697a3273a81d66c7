"""The broker's word: what it alone says of a message's failures, its way and who sent it. Pure.

Clients may send properties of the same names, such as a consumer that forwards a dead letter with all it says: they are
passed on, as in ActiveMQ. So that nobody takes them for the broker's word, a message says in WROTE which of them the
broker wrote; that one nobody else sends (decision 18).
"""

from __future__ import annotations

from collections.abc import Mapping

#: The header that says where a message was before: where it failed, or where an operator took it from. No client's.
ORIGIN = "original-destination"
#: ActiveMQ's header that says why a message failed.
CAUSE = "dlqDeliveryFailureCause"
#: When it failed, milliseconds since the epoch.
FAILED_AT = "dlqTime"
#: What a dead letter says of its failure: not true any more when it is tried again. Its way (`dlqRoute`) stays.
FAILURE = (CAUSE, "dlqDeliveryCount", "dlqConsumer", FAILED_AT)
#: The header that names the places where it was sent and where it lay, in order; also of what operators moved.
ROUTE = "dlqRoute"
#: Places where it was by the word of whoever sent it, which the broker's own ROUTE would else have replaced. A claim:
#: nobody believes it, but what is masked there stays masked.
CLAIMED_ROUTE = "dlqClaimedRoute"
#: How often a message was sent again, by whom and when (milliseconds since the epoch); and of which message, which has
#: another id, an edited one was made.
RESUBMIT_COUNT, RESUBMITTED_BY, RESUBMITTED_TIME, RESUBMITTED_FROM = (
    "resubmitCount",
    "resubmittedBy",
    "resubmittedTime",
    "resubmittedFrom",
)
#: Of a resubmitted message: why it had failed, and when it failed first (milliseconds since the epoch). A failure for
#: the same cause after that is not a new one.
EARLIER_CAUSE, FIRST_FAILED_AT = "resubmittedCause", "dlqFirstTime"
#: The operator who sent it as a test.
SENT_BY = "sentBy"
#: What a dead letter had: when it would have expired, milliseconds since the epoch, and that it was not persistent.
ORIGINAL_EXPIRATION, ORIGINAL_DELIVERY_MODE = "originalExpiration", "originalDeliveryMode"
#: The names of all these that the broker answers for.
NAMES = frozenset(
    {
        *FAILURE,
        ROUTE,
        RESUBMIT_COUNT,
        RESUBMITTED_BY,
        RESUBMITTED_TIME,
        RESUBMITTED_FROM,
        EARLIER_CAUSE,
        FIRST_FAILED_AT,
        SENT_BY,
        ORIGINAL_EXPIRATION,
        ORIGINAL_DELIVERY_MODE,
    }
)
#: The header with the names, by comma, of those that the broker wrote.
SIGNATURE = "sluice-wrote"


def broker_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Of a message's headers, those of NAMES that the broker wrote.

    What it stored before it signed has no WROTE, and an ORIGIN, which then was the broker's own, too.
    """
    before_it_signed = NAMES if ORIGIN in headers else ()
    wrote = headers[SIGNATURE].split(",") if SIGNATURE in headers else before_it_signed
    return {name: headers[name] for name in wrote if name in NAMES and name in headers}


def failure_history(headers: Mapping[str, str]) -> dict[str, str | None]:
    """Return the headers by which a message that is resubmitted says what it failed of, and since when.

    None for those that it does not get: it is not a dead letter.
    """
    word = broker_headers(headers)
    cause = word.get(CAUSE)
    first = word.get(FIRST_FAILED_AT) if cause == word.get(EARLIER_CAUSE) else None
    return {EARLIER_CAUSE: cause, FIRST_FAILED_AT: first or word.get(FAILED_AT)}


def with_broker_headers(before: Mapping[str, str], changed: Mapping[str, str | None]) -> dict[str, str | None]:
    """Add the broker's signature to its changes of a message's headers (None: removed)."""
    kept = broker_headers(before).keys() - changed.keys()
    names = kept | {name for name, value in changed.items() if name in NAMES and value is not None}
    none = None if NAMES.isdisjoint(before) else ""  # what a client said of itself must not pass for unsigned
    return {**changed, SIGNATURE: ",".join(sorted(names)) or none}
