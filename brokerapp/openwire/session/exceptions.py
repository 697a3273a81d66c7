"""Say in OpenWire why something was refused: Java's exception classes, by which clients tell errors apart. Pure."""

from __future__ import annotations

from brokerapp.errors import (
    AccessDenied,
    AuthenticationFailed,
    BrokerError,
    ClientIdTaken,
    InvalidDestination,
    LimitExceeded,
    SelectorSyntaxError,
    SubscriptionNotFound,
    TemporaryDestinationGone,
    TransactionNotFound,
    TransactionNotPrepared,
    TransactionRolledBack,
)
from brokerapp.openwire.commands import WireThrowable
from brokerapp.openwire.session.jms_values import BRANCH_PREFIX

#: Error -> class of the exception; the first that fits. What the client library does not know it wraps.
_CLASSES: tuple[tuple[type[BrokerError], str], ...] = (
    (AuthenticationFailed, "java.lang.SecurityException"),
    (ClientIdTaken, "javax.jms.InvalidClientIDException"),
    (AccessDenied, "java.lang.SecurityException"),
    (SelectorSyntaxError, "javax.jms.InvalidSelectorException"),
    (InvalidDestination, "javax.jms.InvalidDestinationException"),
    (SubscriptionNotFound, "javax.jms.InvalidDestinationException"),
    (LimitExceeded, "javax.jms.ResourceAllocationException"),
    (TemporaryDestinationGone, "org.apache.activemq.DestinationDoesNotExistException"),
    (TransactionRolledBack, "javax.jms.TransactionRolledBackException"),
    (BrokerError, "javax.jms.JMSException"),
)
#: Error -> the number by which transaction managers know it; it stands at the end of the sentence.
_XA_CODES: dict[type[BrokerError], int] = {
    TransactionNotFound: -4,  # XAER_NOTA
    TransactionNotPrepared: -6,  # XAER_PROTO
    TransactionRolledBack: 100,  # XA_RBROLLBACK
}


def throwable(error: BrokerError) -> WireThrowable:
    """Return the exception that tells a client of an error; never with a stack trace."""
    code = _XA_CODES.get(type(error))
    if code is not None and f"'{BRANCH_PREFIX}" in str(error):
        return WireThrowable("javax.transaction.xa.XAException", f"{error} xaErrorCode:{code}")
    name = next(name for type, name in _CLASSES if isinstance(error, type))
    # what Java shows of that class is a sentence about the destination that its message names
    message = error.destination if isinstance(error, TemporaryDestinationGone) else str(error)
    return WireThrowable(getattr(error, "java_class", name), message)
