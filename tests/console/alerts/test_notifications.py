"""Test notifications: firing alerts, requests for approval, and finished work of the user."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from brokerapp.model.definitions import VirtualTopic
from console.alerts import active_alerts, notifications
from console.alerts.delivery.models import AlertFiring
from console.analyses.models import AnalysisRun
from console.messages.jobs.models import Job
from console.routing.definitions.changes import DefinitionChange
from console.routing.drafts import draft_service
from console.routing.drafts.models import Draft
from tests.console.conftest import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_is_remembered():
    active_alerts.invalidate()
    yield
    active_alerts.invalidate()


def job(**fields) -> Job:
    about = {
        "name": "37 like it",
        "action": "retry",
        "queue": "queue://ActiveMQ.DLQ",
        "asked_by": "ada",
        "expected": 37,
    }
    return Job.objects.create(**{**about, **fields})


def told(user) -> str:
    return notifications.cells(user)["bell_html"]


def test_what_waits_for_approval_is_told_who_may_approve_it_there():
    asked = job(state=Job.State.ASKED, reason="billing is mended")
    operator, elsewhere = make_user("operator"), make_user("operator", "orders.>", name="elsewhere")
    assert reverse("job", args=[asked.id]) in told(operator)
    assert "billing is mended" in told(operator)
    assert (notifications.cells(operator)["count"], notifications.cells(operator)["state"]) == ("1", "note")
    assert "37 like it" not in told(elsewhere) + told(make_user("support"))
    assert notifications.cells(elsewhere)["state"] == "quiet"


def test_a_draft_that_asks_waits_for_who_may_apply_it():
    draft = draft_service.create_draft("ada", "Trade", [DefinitionChange(None, VirtualTopic("Trade.>"))], 1)
    admin, operator = make_user("admin"), make_user("operator")
    assert "Trade" not in told(admin)
    draft_service.change_state(draft, "ada", Draft.State.ASKED, "asked")
    assert "Draft by ada" in told(admin)
    assert "Trade" not in told(operator), "who may draft, not apply"


def test_the_end_of_what_one_asked_for_is_counted_until_one_looked(browser_of):
    client, now = browser_of("support", name="ada"), timezone.now()
    ada = client.get(reverse("account")).wsgi_request.user
    job(state=Job.State.DONE, done=35, failed=2, finished=now)
    job(name="long ago", state=Job.State.DONE, finished=now - timedelta(days=3))
    job(name="one that was seen at once", state=Job.State.DONE, expected=1, finished=now)
    job(name="of somebody else", state=Job.State.DONE, asked_by="bob", finished=now)
    AnalysisRun.objects.create(title="Traffic", asked_by="ada", state="done", sentence="It was quiet.", finished=now)
    draft_service.change_state(
        draft_service.create_draft("ada", "Trade", [], 1), "eve", Draft.State.DROPPED, "dropped", decided_by="eve"
    )
    text = told(ada)
    assert "35 messages processed, 2 failed" in text
    assert "It was quiet." in text
    assert "Discarded by eve" in text
    assert [each for each in ("long ago", "seen at once", "somebody else") if each in text] == []
    assert notifications.cells(ada)["count"] == "3"
    assert client.post(reverse("bell-seen")).status_code == 204
    assert notifications.cells(ada)["count"] == ""
    assert "It was quiet." in told(ada), "it can be read again for a day"


def test_what_fires_is_red_whatever_else_there_is():
    now = timezone.now()
    AlertFiring.objects.create(
        rule_name="Too deep", subject="queue://q", state="firing", since=now, fired=now, value=9, worst=9, sentence="9"
    )
    job(state=Job.State.ASKED)
    cells = notifications.cells(make_user("operator"))
    assert (cells["count"], cells["state"]) == ("2", "act")
    assert cells["bell_html"].index("Too deep") < cells["bell_html"].index("37 like it")


def test_a_page_reads_once_what_its_user_chose_for_it(browser_of):
    client = browser_of("operator")
    client.post(reverse("theme"), {"theme": "dark"})
    with CaptureQueriesContext(connection) as asked:
        page = client.get(reverse("jobs"))
    assert 'data-theme="dark"' in page.content.decode()
    assert sum("usersetting" in each["sql"] for each in asked) == 1


def test_what_has_no_bar_asks_nothing_for_the_bell(browser_of):
    client = browser_of("operator")
    for path, has_bar in ((reverse("jobs"), True), ("/nowhere", False)):
        with CaptureQueriesContext(connection) as asked:
            client.get(path)
        assert any("finished" in each["sql"] for each in asked) is has_bar, path
