"""Nothing that clients name breaks a line of the log."""

from __future__ import annotations

import logging

from celery.signals import after_setup_logger
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils.module_loading import import_string


def test_a_line_break_of_a_client_begins_no_line_of_the_log(db, caplog):
    formatter = import_string(settings.LOGGING["formatters"]["line"]["()"])()
    with caplog.at_level(logging.INFO):
        name = "eve\nINFO root: admin from 10.0.0.1: delete queue: done\r\x1b[2J"
        Client().post(reverse("login"), {"username": name, "password": "x"})
        Client().post("/log%0Ain/", {})
    lines = [formatter.format(record) for record in caplog.records]
    assert any("eve\\nINFO root: admin" in line for line in lines)
    assert all("\n" not in line and "\x1b" not in line for line in lines)


def test_workers_write_one_line_a_record_too():
    logger = logging.getLogger("tests.security.workers")
    logger.addHandler(logging.StreamHandler())
    after_setup_logger.send(sender=None, logger=logger)
    record = logger.makeRecord("n", logging.INFO, "f", 1, "move to %s", ("a\nb",), None)
    assert logger.handlers[0].format(record).endswith(" INFO    MainProcess: move to a\\nb")


def test_a_traceback_is_below_the_line_of_its_record():
    formatter = import_string(settings.LOGGING["formatters"]["line"]["()"])()
    try:
        raise ValueError("wrong")
    except ValueError as error:
        record = logging.LogRecord(
            "n", logging.ERROR, "f", 1, "failed\nhere", (), (type(error), error, error.__traceback__)
        )
    first, *rest = formatter.format(record).splitlines()
    assert first.endswith(" ERROR   n: failed\\nhere")
    assert (rest[0], rest[-1]) == ("Traceback (most recent call last):", "ValueError: wrong")
