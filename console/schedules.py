"""Schedules of analyses: rows of django-celery-beat that start a run, told in words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from celery.schedules import crontab
from django.utils import timezone
from django_celery_beat.models import CrontabSchedule, PeriodicTask

from console.analyses import request_for, words_for

TASK = "console.start_scheduled"
_FIELDS = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")
#: How often: what the page calls it, and the fields of a crontab (UTC).
RHYTHMS: dict[str, tuple[str, dict[str, str]]] = {
    "hourly": ("every hour, five minutes past", {"minute": "5"}),
    "daily": ("every day at 06:00 UTC", {"minute": "0", "hour": "6"}),
    "weekly": ("every Monday at 06:00 UTC", {"minute": "0", "hour": "6", "day_of_week": "1"}),
}


@dataclass(frozen=True, slots=True)
class Schedule:
    """One schedule as a page shows it."""

    task: PeriodicTask
    title: str
    parameters: str
    rhythm: str
    next_run: datetime | None  #: None while it is switched off


def schedules() -> list[Schedule]:
    """All schedules of analyses, by name."""
    return [_shown(task) for task in PeriodicTask.objects.filter(task=TASK).select_related("crontab").order_by("name")]


def add(kind: str, window: str, rhythm: str, author: str) -> PeriodicTask:
    """A new schedule; one of the same name is replaced. Raises RequestRefused for what is no analysis."""
    title, parameters = request_for(kind, {"window": window})
    words, rhythm_fields = RHYTHMS[rhythm]
    every, _ = CrontabSchedule.objects.get_or_create(**rhythm_fields, timezone="UTC")
    name = f"{title}, {words_for(kind, parameters)}, {words}"
    defaults = {
        "task": TASK,
        "crontab": every,
        "queue": "default",
        "enabled": True,
        "args": json.dumps([kind, parameters["window"]]),
        "kwargs": json.dumps({"schedule": f"schedule of {author}"}),
    }
    return PeriodicTask.objects.update_or_create(name=name, defaults=defaults)[0]


def next_run(task: PeriodicTask, now: datetime) -> datetime:
    """When it starts next, whether or not it ran before."""
    there = now.astimezone(task.crontab.timezone)
    fields = {name: getattr(task.crontab, name) for name in _FIELDS}
    return now + crontab(**fields, nowfun=lambda: there).remaining_estimate(there)


def _shown(task: PeriodicTask) -> Schedule:
    kind, window = json.loads(task.args)[:2]
    rhythm = next((words for words, each in RHYTHMS.values() if _has(task.crontab, each)), None)
    return Schedule(
        task=task,
        title=task.name.partition(",")[0],
        parameters=words_for(kind, {"window": window}),
        rhythm=rhythm or f"{task.crontab.human_readable} UTC",
        next_run=next_run(task, timezone.now()) if task.enabled else None,
    )


def _has(rhythm: CrontabSchedule, wanted: dict[str, str]) -> bool:
    return all(getattr(rhythm, name) == wanted.get(name, "*") for name in _FIELDS)
