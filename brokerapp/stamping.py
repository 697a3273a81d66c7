"""Stamping: SENDs get the broker's time before anything else is done with them, where the configuration asks for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from brokerapp.actions import Send, SendRun
from brokerapp.client import Client
from brokerapp.engine.time_stamps import stamped
from brokerapp.settings import TimeStamping

Sending = Callable[[Client, Send], None]
SendingRun = Callable[[Client, SendRun], None]


def stamping(plugin: TimeStamping, send: Sending) -> Sending:
    """What does the same with a message whose time is right."""
    return lambda client, message: send(client, _stamped(plugin, message))


def stamping_run(plugin: TimeStamping, send: SendingRun) -> SendingRun:
    """What does the same with a run of messages whose time is right."""
    return lambda client, run: send(client, replace(run, like=_stamped(plugin, run.like)))


def _stamped(plugin: TimeStamping, send: Send) -> Send:
    timestamp, expires = stamped(plugin, time.time_ns() // 1_000_000, send.timestamp, send.expires)
    return replace(send, timestamp=timestamp, expires=expires)
