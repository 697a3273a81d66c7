"""Represent a message that an open transaction acknowledged."""

from __future__ import annotations

from typing import NamedTuple

from brokerapp.engine.clients.client import Transaction
from brokerapp.engine.dispatch.subscription import Subscription


class Acknowledged(NamedTuple):
    """A message that an open transaction acknowledged."""

    transaction: Transaction
    subscription: Subscription
    key: str  #: by which the subscription held it
