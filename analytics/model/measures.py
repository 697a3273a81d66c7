"""Define which kinds of trace events each measure counts, for rollups, analyses and their tests alike. Pure.

Kinds are those of brokerapp/tracing/schema.py.
"""

from __future__ import annotations

#: What brings a copy to a queue or subscription. A `return` is no copy more: it was put off, by a `delay`, and is back.
ARRIVALS = ("forward", "return")
#: What takes a copy from its queue or subscription, once for each copy. An `expire` does not: it says why, and the
#: `dead_letter` or the `drop` that follows takes the copy. What is moved is a `forward` elsewhere.
REMOVALS = ("ack", "dead_letter", "drop", "move", "remove", "delay")
#: Reasons of drops of copies that never came to wait.
NEVER_STORED = ("the queue is full", "no room", "the temporary destination is gone")
#: The part of these that says how fast consumers work: not what operators moved or removed.
SERVED = ("ack", "dead_letter", "drop", "delay")
#: What becomes of a copy that nobody could use, once for each copy.
FAILURES = ("dead_letter", "drop")
#: What ends a consumer's hold on a message.
SETTLEMENTS = ("ack", "redeliver", "dead_letter", "drop")
#: Events that are about no message.
WITHOUT_MESSAGE = ("depth", "subscribe", "unsubscribe")
