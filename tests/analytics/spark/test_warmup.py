"""Test that the warm-up gives way to runs; that it warms Spark up is tested in test_tasks.py."""

import pytest

from analytics.spark import warmup
from analytics.spark.run_registry import RunRegistry
from brokerapp.system.environment import Environment


@pytest.fixture
def environment(tmp_path, monkeypatch) -> Environment:
    """An installation whose Spark server is there."""
    monkeypatch.setattr(warmup, "connect", lambda *_, **__: None)
    return Environment.read({"SLUICE_DATA": str(tmp_path), "REDIS_URL": "unix:///nowhere"})


@pytest.mark.parametrize("is_asked", [True, False])
def test_warming_up_ends_where_it_stands_when_somebody_asks(environment, monkeypatch, is_asked):
    begun, ended = [], []

    class Run:
        def __init__(self, run_id, request, own, report):
            assert own.archive != environment.archive
            self._run_id, self._report = run_id, report

        def run(self):
            begun.append(self._run_id)
            if is_asked:
                RunRegistry(environment).record_session("asked", "session")
            self._report(stage="1 of 2")
            ended.append(self._run_id)

    monkeypatch.setattr(warmup, "RunExecution", Run)
    warmup.warm_up(environment)
    assert (len(begun), len(ended)) == ((1, 0) if is_asked else (warmup.ROUNDS, warmup.ROUNDS))
    assert not list(environment.spark.rglob("warm-up-*"))
