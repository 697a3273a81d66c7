"""Write audit entries for operations of `brokerctl`."""

from __future__ import annotations

import getpass
import logging
import socket

from django.db import DatabaseError

from brokerapp.errors import BrokerError, StoreUnavailable
from brokerapp.management.verbs.operations import CliOperation, after_operation
from console.audit import trail
from console.audit.models import AuditEntry

logger = logging.getLogger(__name__)


def listen() -> None:
    """Have each operation on the command line recorded, once."""
    if record_operation not in after_operation:
        after_operation.append(record_operation)


def record_operation(operation: CliOperation) -> None:
    """Write an entry for one operation. If the database fails, log it: the operation is done already."""
    actor = trail.AuditActor(_user(), socket.gethostname(), via=AuditEntry.Via.BROKERCTL)
    error = operation.error
    if error is None:
        outcome = AuditEntry.Outcome.DONE
    elif isinstance(error, BrokerError) and not isinstance(error, StoreUnavailable):
        outcome = AuditEntry.Outcome.REFUSED
    else:
        outcome = AuditEntry.Outcome.FAILED
    change = trail.AuditChange(operation.before, operation.after)
    detail = "" if error is None else str(error) or type(error).__name__
    try:
        trail.record(actor, operation.verb, operation.object, outcome, detail, change)
    except DatabaseError as failure:
        logger.error(
            "not written to the audit log (%s): %s %s %s", failure, actor.who, operation.verb, operation.object
        )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name
        return "unknown"
