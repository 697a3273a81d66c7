"""Test arguments and output of brokerctl whatif; its figures are tested in whatif/test_whatif_replay.py."""

import subprocess
import sys

import pytest

from analytics.requests.time_ranges import read_moment as moment
from brokerapp.errors import RequestRefused
from brokerapp.management.verbs.whatif_verb import _executed, _lines
from brokerapp.system.environment import PROJECT

NOW_US = 1_774_771_200_000_000  # 2026-03-29T08:00:00Z
HOUR_US = 3_600_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("15m", NOW_US - HOUR_US // 4),
        ("24h", NOW_US - 24 * HOUR_US),
        ("7d", NOW_US - 168 * HOUR_US),
        ("2026-03-29T07:00", NOW_US - HOUR_US),
        ("2026-03-29T08:30+02:00", NOW_US - 3 * HOUR_US // 2),
    ],
)
def test_a_moment_is_a_time_ago_or_a_date(text, expected):
    assert moment(text, NOW_US) == expected


@pytest.mark.parametrize("text", ["yesterday", "0h", "24", "h", "2026-13-01"])
def test_what_is_no_moment_is_refused_with_the_rule(text):
    with pytest.raises(RequestRefused, match=r"invalid time .*: expected a duration such as 15m"):
        moment(text, NOW_US)


def test_a_terminal_shows_the_sentence_the_notes_and_the_tables():
    def table(name, columns, row):
        columns = [{"name": each} for each in columns.split()]
        return {"file": f"{name}.parquet", "columns": columns, "rows": [row], "total_rows": 50}

    result = {
        "sentence": "The draft would have changed what 1 target of 2 gets.",
        "notes": ["Sampled."],
        "tables": [
            table("totals", "what unit in_force draft difference", ["Copies stored", "messages", 1000, 2500, 1500]),
            table(
                "targets", "target state in_force draft difference waiting_recorded waiting_draft",
                ["queue://orders.eu", "new", 0, 1500, 1500, None, 12],
            ),
        ],
    }  # fmt: skip
    assert _lines(result) == [
        "The draft would have changed what 1 target of 2 gets.",
        "note: Sampled.",
        "",
        "metric         active  draft  difference",
        "Copies stored   1,000  2,500       1,500",
        "... and 49 more (use --json for all)",
        "",
        "target             state  active  draft  difference  backlog recorded  backlog draft",
        "queue://orders.eu  new         0  1,500       1,500                               12",
        "... and 49 more (use --json for all)",
    ]


def test_other_verbs_do_not_wait_for_what_this_one_and_networks_import():
    heavy = [
        "analytics",
        "brokerapp.model.network_stats",
        "brokerapp.network.connectors.connector_store",
        "django.db.models",
        "pyarrow",
    ]
    asked = f"import sys, brokerapp.management.brokerctl; print({{*sys.modules}} & {{*{heavy}}})"
    done = subprocess.run([sys.executable, "-c", asked], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_progress_is_written_to_terminals_only(monkeypatch, capsys):
    monkeypatch.setattr(
        "analytics.spark.run_execution.RunExecution", lambda id, request, environment, tell: _Telling(tell)
    )
    assert _executed(None, None) == {"found": 1}
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    _executed(None, None)
    assert "50% counting" in capsys.readouterr().err


class _Telling:
    """An execution that takes one step."""

    def __init__(self, tell) -> None:
        self.tell = tell

    def run(self) -> dict:
        self.tell("counting", 0.5)
        return {"found": 1}
