"""A job that keeps Spark busy, and does not stop when its time is over."""

import contextlib

import endless_job
from celery.exceptions import SoftTimeLimitExceeded

STEPS = 1


def run(question, collect):
    while True:
        with contextlib.suppress(SoftTimeLimitExceeded):
            endless_job.run(question, collect)
