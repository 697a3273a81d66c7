"""Groups similar causes of failures by removing variable parts. Pages and Spark share the rule."""

from __future__ import annotations

import re

GAP = "…"
#: What differs between failures that are alike: ids, words and numbers with a digit in them, what stands in quotes. A
#: word is tried from its beginning only, so that a long one takes no longer than a short one for each of its letters.
#: It means the same to Python and, told to know all letters, to Java.
VARIABLE = r"ID:\S+|\"[^\"]{0,200}\"|'[^']{0,200}'|(?<![\w-])[\w-]*\d[\w-]*(?:[.,:]\d+)*"
#: Gaps in a row are one.
GAPS = rf"{GAP}(?:\s*{GAP})+"
#: Characters of a cause that tell it from others.
LONGEST = 200
UNKNOWN = "no cause recorded"
#: The cause of a message whose time was over, as the broker says it (brokerapp/core/redelivery/dead_lettering.py).
EXPIRED = "expired"
#: How failures are counted, wherever they are over a time: by alerts, analyses and the reports made of these.
COUNTED_AGAIN = "a message that is resubmitted and fails again counts again"
#: The same in what an analysis says of its figures, which are of times, and not of messages.
NOTE = f"Dead letters are counted by failure: {COUNTED_AGAIN}."

_VARIABLE, _GAPS = re.compile(VARIABLE), re.compile(GAPS)


def pattern_of(cause: str) -> str:
    """Return a cause without its variable parts, such as ids and numbers."""
    return _GAPS.sub(GAP, _VARIABLE.sub(GAP, cause.strip()))[:LONGEST] or UNKNOWN
