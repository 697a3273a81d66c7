"""Test the monitoring endpoints while the store is unavailable."""

from tests.console.conftest import console_without_store  # noqa: F401
from tests.monitoring.conftest import text


def test_readiness_names_what_is_missing_and_the_process_lives_on(console_without_store, client):  # noqa: F811
    assert client.get("/healthz").status_code == 200


def test_each_thing_that_is_not_ready_is_named(console_without_store, client, db):  # noqa: F811
    response = client.get("/readyz")
    found = response.json()
    assert (response.status_code, found["ready"], found["database"]) == (503, False, "ok")
    assert found["store"] != "ok"
    assert found["node"] != "ok"


def test_monitors_get_a_status_and_a_sentence(console_without_store, monitor):  # noqa: F811
    response = monitor.get("/metrics")
    assert response.status_code == 503
    assert text(response).strip()
