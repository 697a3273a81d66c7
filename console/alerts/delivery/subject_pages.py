"""Find the page of the console that shows what an alert is about."""

from __future__ import annotations

from django.urls import reverse

from console.alerts.delivery.models import AlertFiring
from console.analyses.result_tables import destination_url

#: Metric of a rule -> name of the page that shows its value. Alerts of these metrics are not about a destination.
PAGES = {
    "connections": "connections",
    "held-back": "connections",
    "slow": "connections",
    "links-down": "topology",
    "brokers-away": "topology",
    "nodes": "topology",
    "prepared": "transactions",
    "failed-backups": "backups",
    "certificate-days": "checks",
    "burn-fast": "objectives",
    "burn-slow": "objectives",
    "error-budget": "objectives",
}


def subject_page(firing: AlertFiring) -> tuple[str, str] | None:
    """Return label and URL of the page of an alert's destination, or else of its metric; None where there is none."""
    if url := destination_url(firing.subject):
        return firing.subject, url
    page = PAGES.get(firing.rule.metric) if firing.rule else None
    return (page.capitalize(), reverse(page)) if page else None
