"""Define the Celery app `sluice`: queue `default` for short tasks, queue `spark` for analyses."""

from __future__ import annotations

import logging
import os

from celery import Celery
from celery.signals import after_setup_logger, after_setup_task_logger
from kombu import Queue

from brokerapp.store.client.pools import celery_prefix
from brokerapp.system.environment import Environment
from brokerapp.system.store_address import StoreAddress
from console.ops.log_filters import OneLineFormatter

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

#: Seconds after which a task is killed. An analysis that needs longer is a mistake in its request.
HARD_LIMIT = 60 * 60


#: What finds the primary of a store with replicas, see there.
PRIMARY = "console.broker.celery_transport"


def transport_url(redis_url: str) -> str:
    """Return the store's URL in Celery's form: a Unix socket is `redis+socket://PATH`."""
    scheme, _, rest = redis_url.partition("://")
    return f"redis+socket://{rest}" if scheme == "unix" else redis_url


def transport_settings(redis_url: str) -> dict[str, str]:
    """Return the settings by which Celery reaches the store."""
    address = StoreAddress.parse(redis_url)
    url = transport_url(address.server_url)
    if address.has_one_server:
        return {"broker_url": url, "result_backend": url}
    return {
        "broker_url": url,
        "broker_transport": f"{PRIMARY}:PrimaryTransport",
        "result_backend": f"{PRIMARY}:PrimaryBackend+{url}",
    }


#: Tasks that come every few seconds and say nothing when all is well: their coming and going is not logged.
QUIET = ("console.look_at_reports", "console.look_at_backups", "analytics.tasks.warm_up")


def _is_news(record: logging.LogRecord) -> bool:
    return record.levelno > logging.INFO or not any(name in record.getMessage() for name in QUIET)


@after_setup_logger.connect
@after_setup_task_logger.connect
def _set_up_handlers(logger: logging.Logger, **_: object) -> None:
    for handler in logger.handlers:
        handler.addFilter(_is_news)
        handler.setFormatter(OneLineFormatter("%(asctime)s %(levelname)-7s %(processName)s: %(message)s"))


app = Celery("sluice")
app.conf.update(
    **transport_settings(Environment.read().redis_url),
    # Celery shares the store with the broker: its keys stay apart by their prefix.
    broker_transport_options={
        "global_keyprefix": celery_prefix(Environment.read().redis_url),
        # A task that runs longer than this would be handed out a second time.
        "visibility_timeout": HARD_LIMIT + 15 * 60,
        # Who asks for a task waits in front of a page: better a quick no than a long silence.
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0.2,
    },
    result_backend_transport_options={"global_keyprefix": celery_prefix(Environment.read().redis_url)},
    broker_connection_retry_on_startup=True,
    task_default_queue="default",
    task_queues=(Queue("default"), Queue("spark")),
    task_time_limit=HARD_LIMIT,
    task_track_started=True,
    worker_prefetch_multiplier=1,
    # Seconds a worker that ends leaves to what it is doing; then it gives the task back.
    worker_soft_shutdown_timeout=5.0,
    task_acks_late=False,
    result_expires=24 * 60 * 60,
    timezone="UTC",
    enable_utc=True,
    beat_scheduler="django_celery_beat.schedulers:DatabaseScheduler",
    # Named, not discovered: what a worker can do stands here.
    imports=("console.tasks", "analytics.tasks"),
)
