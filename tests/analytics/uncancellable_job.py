"""A job that ignores its time limit."""

import contextlib

import slow_job
from celery.exceptions import SoftTimeLimitExceeded

STEPS = 1


def run(question, collect):
    while True:
        with contextlib.suppress(SoftTimeLimitExceeded):
            slow_job.run(question, collect)
