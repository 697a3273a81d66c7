"""Define which kinds of trace events each measure counts, for rollups, analyses and their tests alike. Pure.

Kinds are those of brokerapp/tracing/schema.py.
"""

from __future__ import annotations

#: Events that add a copy to a queue or subscription. A `return` is a delayed copy that is back (see `delay`).
ARRIVALS = ("forward", "return")
#: Events that remove a copy from its queue or subscription, once for each copy. An `expire` does not: the `dead_letter`
#: or `drop` that follows does. A moved copy is also a `forward` at its new destination.
REMOVALS = ("ack", "dead_letter", "drop", "move", "remove", "delay")
#: Reasons of drops of copies that were never stored, as the broker records them.
NEVER_STORED = ("the queue is full", "no room", "the temporary destination is gone")
#: Reason of the return of a copy whose acknowledgement, in a prepared transaction, was rolled back; as it is recorded.
UNDONE = "a prepared transaction was rolled back"
#: The removals that measure how fast consumers work: without those by operators.
SERVED = ("ack", "dead_letter", "drop", "delay")
#: Events that end a failed copy, once for each copy.
FAILURES = ("dead_letter", "drop")
#: Events after which a message is no longer in flight at its consumer.
SETTLEMENTS = ("ack", "redeliver", "dead_letter", "drop")
#: Events without a message.
WITHOUT_MESSAGE = ("depth", "subscribe", "unsubscribe")
