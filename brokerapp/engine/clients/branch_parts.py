"""Name the parts of a distributed transaction's branch, and what nodes ask each other about these. Pure.

Clients at several nodes may take part in one branch. What was done at each of the nodes is a part of it: they are
prepared one by one, and end together. The part of the node that was asked to prepare the branch bears its name.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

#: Stands in the id of a part between the name of the branch, which has none, and the session of the node.
_AT = "@"

#: Answers of a node: it did what it was asked, or had nothing to prepare. "": it has no such part. Others: why not.
DONE, READ_ONLY = "done", "read only"


class BranchStep(IntEnum):
    """What a node asks another one about a branch. Their numbers are part of the protocol."""

    JOIN = 1  #: a client here takes part in it: is it open there, too?
    PREPARE_PART = 2  #: prepare your part of it
    ROLL_BACK_PART = 3  #: roll back your part, which is not prepared
    PREPARE = 4  #: prepare it, with the parts of all nodes, if it is open there
    COMMIT = 5  #: prepare and commit it, if it is open there
    ROLL_BACK = 6  #: roll it back, with the parts of all nodes, if it is open there
    RETURN = 7  #: roll back this prepared part: your clients held what it acknowledged


def part_id(name: str, session: str) -> str:
    """Return the id under which a node prepares its part of a branch for another node."""
    return f"{name}{_AT}{session}"


def branch_of(id: str) -> str:
    """Return the name of the branch that a part belongs to."""
    return id.partition(_AT)[0]


def parts_of(name: str, ids: Iterable[str]) -> list[str]:
    """Return the ids of the parts of a branch among all, that which bears its name last."""
    return sorted((each for each in ids if branch_of(each) == name), reverse=True)
