"""Test that a request for a foreign host is refused with one short line in the log."""

import logging

import pytest
from django.test import Client


@pytest.mark.parametrize("path", ["/login/", "/api/v1/me", "/healthz"])
def test_a_wrong_host_is_one_bounded_line_in_the_log(db, caplog, path):
    caplog.set_level(logging.INFO)
    response = Client(raise_request_exception=False).get(path, headers={"host": "evil.example" + "x" * 5000})
    assert response.status_code == 400
    records = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert [each for each in records if each.exc_info] == []
    [line] = [each.getMessage() for each in records if "host" in each.getMessage()]
    assert "SLUICE_HOSTS" in line
    assert len(line) < 250
