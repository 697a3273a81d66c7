"""Surveys the dead letters of all queues that a user may browse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsePage
from console.access.masking import all_rules, mask_message
from console.access.permissions import AnyUser, Permission, visible
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.messages.dead_letter_groups import BrowseBack, DeadLetterSurvey, is_dead_letter_queue, survey_queues


def survey_visible(user: AnyUser) -> DeadLetterSurvey:
    """Read and group the dead letters of all queues that the user may browse."""
    sees = visible(user, Permission.BROWSE)
    stats = [
        each for each in mirror().current().stats.values() if is_dead_letter_queue(each) and sees(each.destination)
    ]
    return survey_queues(stats, _browse_as(user))


def _browse_as(user: AnyUser) -> BrowseBack:
    """Return a browse function with headers masked for the user; bodies are not read."""
    broker = gateway()
    if not all_rules():
        return broker.browse_back

    def browse(queue: Destination, *where: Any) -> BrowsePage:
        page = broker.browse_back(queue, *where)
        return replace(page, messages=[mask_message(user, replace(each, body=b""), queue) for each in page.messages])

    return browse
