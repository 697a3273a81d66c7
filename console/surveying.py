"""Surveying: the dead letters of all queues, as one user may see them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from brokerapp.destination import Destination
from brokerapp.snapshot import BrowsePage
from console.access import AnyUser, Verb, visible
from console.dead_letters import Browse, Survey, is_dead_letter_queue, survey
from console.gateway import gateway
from console.live.mirror import mirror
from console.masking import masked, rules


def survey_for(user: AnyUser) -> Survey:
    """Read what the dead-letter queues hold that this user may browse."""
    sees = visible(user, Verb.BROWSE)
    stats = [
        each for each in mirror().current().stats.values() if is_dead_letter_queue(each) and sees(each.destination)
    ]
    return survey(stats, _browse_as(user))


def _browse_as(user: AnyUser) -> Browse:
    """Browsing as this user may see headers; bodies are not looked at."""
    door = gateway()
    if not rules():
        return door.browse_back

    def browse(queue: Destination, *where: Any) -> BrowsePage:
        page = door.browse_back(queue, *where)
        return replace(page, messages=[masked(user, replace(each, body=b""), queue) for each in page.messages])

    return browse
