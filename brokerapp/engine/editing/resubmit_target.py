"""Find the destination to which a message is resubmitted by default. Pure.

The node that sends it, and whoever asks for the rights and shows the way before, ask here. What counts is the header
in the message itself: a copy that came by way of a virtual destination shows its consumers that one in its place.
"""

from __future__ import annotations

from collections.abc import Mapping

from brokerapp.engine.policy.broker_headers import CAUSE, broker_headers
from brokerapp.model.destination import Destination


def origin_destination(origin: str | None) -> Destination | None:
    """Where a message that is resubmitted goes; None: it does not say, or that was temporary.

    Raises InvalidDestination.
    """
    if not origin:
        return None
    found = Destination.parse(origin)
    return None if found.is_temporary else found


def edit_target(headers: Mapping[str, str], origin: str | None, here: Destination) -> Destination:
    """Where a message that is edited goes: a dead letter to where it failed, any other to where it is.

    Raises InvalidDestination.
    """
    return Destination.parse(origin) if origin and CAUSE in broker_headers(headers) else here
