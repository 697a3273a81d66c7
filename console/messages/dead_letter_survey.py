"""Surveying: the dead letters of all queues, as one user may see them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsePage
from console.access.masking import all_rules, mask_message
from console.access.permissions import AnyUser, Verb, visible
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.messages.dead_letter_groups import Browse, Survey, is_dead_letter_queue, survey


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
    if not all_rules():
        return door.browse_back

    def browse(queue: Destination, *where: Any) -> BrowsePage:
        page = door.browse_back(queue, *where)
        return replace(page, messages=[mask_message(user, replace(each, body=b""), queue) for each in page.messages])

    return browse
