"""Group similar causes of failures by removing variable parts. Pages and Spark share the rule."""

from __future__ import annotations

import re

GAP = "…"
#: What a JMS client says of its redelivery policy where it gives up; what failed follows it.
POLICY = r"RedeliveryPolicy \{[^{}]{0,1000}\}"
#: The variable parts: redelivery policies, ids, words and numbers that contain a digit, quoted text. A word matches
#: from its beginning only, so that the time grows with its length, not faster. It means the same to Python and, with
#: (?U), to Java.
VARIABLE = POLICY + r"|ID:\S+|\"[^\"]{0,200}\"|'[^']{0,200}'|(?<![\w-])[\w-]*\d[\w-]*(?:[.,:]\d+)*"
#: Successive gaps, which become one.
GAPS = rf"{GAP}(?:\s*{GAP})+"
#: Characters of a cause that are compared.
LONGEST = 200
UNKNOWN = "no cause recorded"
#: The cause of an expired message, as the broker writes it (brokerapp/core/redelivery/dead_lettering.py).
EXPIRED = "expired"
#: How failures over a time range are counted, by alerts, analyses and reports.
COUNTED_AGAIN = "a message that is resubmitted and fails again counts again"
#: The same as a note of an analysis.
NOTE = f"Dead letters are counted by failure: {COUNTED_AGAIN}."

_VARIABLE, _GAPS, _POLICY = re.compile(VARIABLE), re.compile(GAPS), re.compile(f":{POLICY}")


def pattern_of(cause: str) -> str:
    """Return a cause without its variable parts, such as ids and numbers."""
    return _GAPS.sub(GAP, _VARIABLE.sub(GAP, cause.strip()))[:LONGEST] or UNKNOWN


def without_policy(cause: str) -> str:
    """Return a cause without the redelivery policy of a JMS client, which hides what failed."""
    return _POLICY.sub("", cause)
