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
    TemporaryDestinationGone,
)
from brokerapp.openwire.commands import WireThrowable

#: Error -> class of the exception; the first that fits. What the client library does not know it wraps.
_CLASSES: tuple[tuple[type[BrokerError], str], ...] = (
    (AuthenticationFailed, "java.lang.SecurityException"),
    (ClientIdTaken, "javax.jms.InvalidClientIDException"),
    (AccessDenied, "java.lang.SecurityException"),
    (SelectorSyntaxError, "javax.jms.InvalidSelectorException"),
    (InvalidDestination, "javax.jms.InvalidDestinationException"),
    (LimitExceeded, "javax.jms.ResourceAllocationException"),
    (TemporaryDestinationGone, "org.apache.activemq.DestinationDoesNotExistException"),
    (BrokerError, "javax.jms.JMSException"),
)


def throwable(error: BrokerError) -> WireThrowable:
    """Return the exception that tells a client of an error; never with a stack trace."""
    name = next(name for type, name in _CLASSES if isinstance(error, type))
    # what Java shows of that class is a sentence about the destination that its message names
    message = error.destination if isinstance(error, TemporaryDestinationGone) else str(error)
    return WireThrowable(getattr(error, "java_class", name), message)
