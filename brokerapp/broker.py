"""Broker: what clients ask, decided with the engine and handed to the committer. Synchronous; nothing here waits.

The way of a message: `send` routes it and submits a unit; when the store has it, `_stored` offers its copies to the logs it
reached; `delivery.py` gives them to consumers; `settle` submits their removal.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from brokerapp.actions import Abort, Begin, Commit, Send, Settle, Subscribe, Unsubscribe
from brokerapp.client import MAX_TRANSACTIONS, Client, Placed, Transaction
from brokerapp.committer import Committer
from brokerapp.definitions import Definitions, VirtualTopic
from brokerapp.delivery import Delivery
from brokerapp.destination import Destination, Kind
from brokerapp.engine.dead_letters import DEFAULT_STRATEGY, dead_letter, dead_letter_destination
from brokerapp.engine.destination_map import DestinationMap, matches
from brokerapp.engine.message_log import Entry, MessageLog, Subscription
from brokerapp.engine.routing import Route, route
from brokerapp.engine.topology import Topology
from brokerapp.errors import InvalidDestination, LimitExceeded, RequestRefused
from brokerapp.message import Message
from brokerapp.recording.recorder import Recorder
from brokerapp.recording.schema import ACK, DEAD_LETTER, DROP, ENQUEUE, EXPIRE, FORWARD, REDELIVER
from brokerapp.selectors import compile_selector
from brokerapp.stats import Stats
from brokerapp.store import LogState, Unit

#: What ActiveMQ lets a consumer hold unacknowledged when nobody says otherwise.
DEFAULT_PREFETCH = {Kind.QUEUE: 1000, Kind.TOPIC: 32767}
#: Longest name of a destination, characters: it is part of a key of the store.
MAX_NAME = 1024
#: Mark of a log whose messages may all have been delivered.
OPEN = "open"
