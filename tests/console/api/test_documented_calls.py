"""Test the calls that docs/monitoring.md shows, run by curl on a running console."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.console.accounts.test_api_tokens import token_of

TEXT = (Path(__file__).parents[3] / "docs/monitoring.md").read_text()
CALLS = re.findall(r"^curl .*$", TEXT, re.MULTILINE)


def test_the_guide_shows_calls():
    assert len(CALLS) >= 4


@pytest.mark.django_db(transaction=True)
def test_each_documented_call_does_what_it_says(live_server, console, wait_for_mirror):
    console.send("/queue/orders", "1")
    wait_for_mirror("orders", 1)
    token = token_of("admin", "see", "browse", "read", "send", "remove")
    answers = [answer_of(call, live_server.url, token) for call in CALLS]
    overview, history, listed, sent, browsed, purged = answers[:6]
    assert overview["totals"]["pending"] >= 1
    assert history["end_ms"] > history["start_ms"]
    assert "orders" in [each["name"] for each in listed["items"]]
    assert sent["queues"] == ["queue://orders"]
    assert len(browsed["items"]) == 2
    assert purged == {"removed": 2}


def answer_of(call: str, url: str, token: str):
    variables = {"PATH": os.environ["PATH"], "URL": url, "TOKEN": token}
    done = subprocess.run(["sh", "-c", call], env=variables, capture_output=True, text=True, timeout=30, check=True)
    return json.loads(done.stdout)
