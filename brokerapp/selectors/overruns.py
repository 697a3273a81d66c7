"""Overruns: conditions that take too long for some messages. They have no result there, and soon are not asked at all.

The node does nothing else while it computes a condition, and anybody who may subscribe may bring one.
"""

from __future__ import annotations

import logging

logger = logging.getLogger(__name__)

#: How often a condition may take too long. More than once, as one odd message proves little.
MAX_OVERRUNS = 3


class Overruns:
    """How often one condition took too long."""

    __slots__ = ("_count", "_what")

    def __init__(self, what: str) -> None:
        self._what, self._count = what, 0

    @property
    def too_many(self) -> bool:
        """Whether it is not to be asked any more."""
        return self._count >= MAX_OVERRUNS

    def happened(self) -> None:
        """It took too long once more."""
        self._count += 1
        end = "; it has no result from now on" if self.too_many else ""
        logger.warning("%.200s took too long for a message%s", self._what, end)
