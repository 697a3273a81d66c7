"""Queue tasks for Celery's workers at once, or raise an error that a page can show."""

from __future__ import annotations

from typing import Any

from celery import current_app
from kombu.exceptions import OperationalError

from brokerapp.errors import StoreUnavailable


def enqueue(task: str, *args: Any, queue: str = "default", task_id: str | None = None) -> None:
    """Put a task, by its name, before the workers of a queue. Raises StoreUnavailable."""
    try:
        # Outcomes are in the database: waiting for a store of results would only delay the error of one that is away.
        current_app.send_task(task, args=list(args), queue=queue, task_id=task_id, retry=False, ignore_result=True)
    except OperationalError as error:
        raise StoreUnavailable(f"task {task} could not be queued: {error}") from error


def revoke(task_id: str) -> None:
    """End a task wherever it is: waiting before workers, or in one, which gets SIGTERM. Raises StoreUnavailable."""
    try:
        current_app.control.revoke(task_id, terminate=True, signal="SIGTERM")
    except OperationalError as error:
        raise StoreUnavailable(f"task {task_id} could not be cancelled: {error}") from error
