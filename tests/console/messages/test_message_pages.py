"""Test pages about messages: bulk operations, impact, sending, dead letters, journeys, search, schedules."""

import re
import time
from datetime import timedelta
from urllib.parse import unquote

import pytest
import stomp
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone
from django.utils.html import strip_tags

from analytics.readers.message_trace import TraceEvent, TraceSearchResult
from brokerapp.engine.policy.broker_headers import CAUSE
from brokerapp.errors import DestinationNotFound
from brokerapp.model.destination import Destination
from console.access.models import MaskingRule
from console.alerts import notifications
from console.audit.models import AuditEntry
from console.broker.gateway import gateway
from console.broker.live.channels import FROM_DATABASE, LiveChannel
from console.broker.mirror import mirror
from console.messages.jobs import job_service, worker
from console.messages.jobs.job_service import JobSpec, start
from console.messages.jobs.models import Job, SavedSelector, Template
from console.messages.journey.journey import Journey, JourneyStep, OperatorAction
from tests.console.conftest import make_user
from tests.waiting import wait_until

queue = Destination.queue
names = iter(range(1_000))


@pytest.fixture
def name(console) -> str:
    return f"pages.{next(names)}"


def refuse_all(console, name: str) -> stomp.Connection12:
    """A client that consumes from this queue and can use nothing it gets."""
    client = console.client()

    class Refuse(stomp.ConnectionListener):
        def on_message(self, frame):
            client.nack(frame.headers["ack"])

    client.set_listener("refuse", Refuse())
    client.subscribe(f"/queue/{name}", id="1", ack="client-individual")
    return client


@pytest.fixture
def dead(console, name) -> str:
    """A queue in which three messages failed: they are in the dead-letter queue."""
    mirror()
    client = refuse_all(console, name)
    for number in range(3):
        console.send(f"/queue/{name}", f'{{"n": {number}}}', order=f"{name}-{number}", persistent="true")
    wait_until(lambda: len(failed(name)) == 3, "three dead letters")
    client.unsubscribe(id="1")
    wait_until(lambda: mirror().current().stats.get(queue("ActiveMQ.DLQ")) is not None, "the queue in the picture")
    wait_until(lambda: mirror().current().stats[queue("ActiveMQ.DLQ")].DLQ, "that it holds dead letters")
    wait_until(lambda: (each := mirror().current().stats.get(queue(name))) and not each.ConsumerCount, "no consumer")
    return name


def failed(name: str) -> list:
    try:
        page = gateway().browse(queue("ActiveMQ.DLQ"), 0, 500, None)
    except DestinationNotFound:  # nothing has failed yet
        return []
    return [each for each in page.messages if each.original_destination == f"/queue/{name}"]


def bodies(name: str) -> list[str]:
    return [each.body.decode() for each in gateway().browse(queue(name), 0, 500, None).messages]


def act(name: str, **query) -> str:
    pairs = "&".join(f"{key}={value}" for key, value in query.items())
    return reverse("message-action", kwargs={"name": name}) + (f"?{pairs}" if pairs else "")


def text(response) -> str:
    """Return a page with white space collapsed, as a browser shows it."""
    return " ".join(response.content.decode().split())


# -- resubmitting


def test_what_is_asked_for_is_said_of_one_message_as_of_one(browser_of, dead):
    support, seqs = browser_of("operator"), [each.seq for each in failed(dead)]
    one = text(support.get(act("ActiveMQ.DLQ"), {"action": "retry", "seq": seqs[:1]}))
    assert "Resubmit 1 message" in one
    assert "Sends the message to its original destination" in one
    two = text(support.get(act("ActiveMQ.DLQ"), {"action": "retry", "seq": seqs[:2]}))
    assert "Sends each message to its original destination" in two


def test_only_dead_letters_are_offered_to_be_resubmitted(browser_of, console, dead):
    console.send(f"/queue/{dead}", "alive", persistent="true")
    support = browser_of("support")
    wait_until(lambda: bodies(dead), "a message in the queue")
    offer = 'value="retry" data-bulk'
    assert offer in text(support.get(reverse("messages", args=["ActiveMQ.DLQ"])))
    assert offer not in text(support.get(reverse("messages", args=[dead])))


def test_what_may_not_be_done_to_a_message_is_there_out_of_use_and_as_small_as_the_rest(browser_of, dead):
    page = text(browser_of("support").get(reverse("message", args=["ActiveMQ.DLQ", failed(dead)[0].seq])))
    shown = re.findall(r'class="button button-small" aria-disabled="true"[^>]*>([^<]+)<', page)
    assert shown == ["Edit and resubmit", "Move", "Copy", "Delete"]


def test_support_resubmits_one_after_seeing_its_blast_radius_and_must_say_why(browser_of, dead):
    support, message = browser_of("support"), failed(dead)[0]
    page = support.get(act("ActiveMQ.DLQ", action="retry", seq=message.seq))
    [blast] = page.context["impact"].groups
    assert blast.sentence == "goes to exactly one queue"
    shown = " ".join(strip_tags(text(page)).split())
    assert "The message goes to exactly one queue." in shown
    assert "Depth 0No consumers" in shown, "it does not say 0 consumers, too"
    silent = support.post(act("ActiveMQ.DLQ"), {"action": "retry", "seq": message.seq})
    assert silent.status_code == 400
    assert "Enter a reason" in text(silent)
    done = support.post(act("ActiveMQ.DLQ"), {"action": "retry", "seq": message.seq, "reason": "fixed"})
    job = Job.objects.get()
    assert done["Location"] == reverse("job", kwargs={"job_id": job.id})
    assert (job.state, job.done, job.asked_by) == ("done", 1, "support")
    assert bodies(dead) == [message.body.decode()]
    entry = AuditEntry.objects.get(action="retry", outcome="done")
    assert (entry.who, entry.after["reason"]) == ("support", "fixed")


def test_who_comes_too_late_is_told_who_took_the_message(browser_of, dead):
    message = failed(dead)[0]
    again = {"action": "retry", "seq": message.seq, "reason": "fixed"}
    browser_of("admin").post(act("ActiveMQ.DLQ"), again)
    support = browser_of("support")
    said = "Resubmitted by admin just now"
    assert said in text(support.post(act("ActiveMQ.DLQ"), again, headers={"HX-Request": "true"}))
    assert said in text(support.get(reverse("message", args=["ActiveMQ.DLQ", message.seq])))


def test_nothing_is_sent_again_to_where_it_would_be_held(browser_of, dead):
    gateway().pause(queue(dead), True)
    wait_until(lambda: mirror().current().stats[queue(dead)].Paused, "the pause in the picture")
    try:
        chosen = {"seq": failed(dead)[0].seq, "reason": "fixed"}
        refused = browser_of("operator").post(act("ActiveMQ.DLQ"), {"action": "retry", **chosen})
        assert f"queue://{dead} is paused (0 messages stored). Resume it first" in text(refused)
        moved = browser_of("admin").post(act("ActiveMQ.DLQ"), {"action": "move", "target": dead, **chosen})
        assert moved.status_code == 302
    finally:
        gateway().pause(queue(dead), False)


def test_a_job_says_how_many_of_what_it_sent_again_failed_again(browser_of, console, dead, monkeypatch):
    monkeypatch.setattr("console.messages.jobs.job_service.enqueue", lambda *_args: None)
    operator, chosen = browser_of("operator"), [each.seq for each in failed(dead)][:2]
    done = operator.post(act("ActiveMQ.DLQ"), {"action": "retry", "seq": chosen, "reason": "fixed"})
    address, live = done["Location"], LiveChannel.parse(f"job:{Job.objects.get().id}", ())
    wait_until(lambda: len(bodies(dead)) == 2, "they are in their queue again")
    assert 'data-flag="false" role="status"' in text(operator.get(address))
    refuse_all(console, dead)
    wait_until(lambda: len(failed(dead)) == 3, "they failed again")
    assert "2 failed again" in text(operator.get(address))
    cells = FROM_DATABASE["job"](User.objects.get(username="operator"), live)
    assert (cells["back"], cells["has_back"]) == ("2 failed again", True)
    assert operator.get(f"/api/v1/jobs/{live.argument}").json()["came_back"] == 2


def test_the_bell_warns_of_a_job_whose_messages_failed_again_also_when_they_are_gone(
    browser_of, console, dead, monkeypatch
):
    monkeypatch.setattr("console.messages.jobs.job_service.enqueue", lambda *_args: None)
    monkeypatch.setattr("console.alerts.notifications.SMALL_JOB", 1)
    operator, chosen = browser_of("operator"), [each.seq for each in failed(dead)][:2]
    operator.post(act("ActiveMQ.DLQ"), {"action": "retry", "seq": chosen, "reason": "fixed"})
    user = User.objects.get(username="operator")
    assert 'data-state="good"' in notifications.cells(user)["bell_html"]
    refuse_all(console, dead)
    wait_until(lambda: len(failed(dead)) == 3, "they failed again")
    monkeypatch.setattr("console.messages.jobs.failed_again.MIN_INTERVAL", 0)
    monkeypatch.setattr("console.messages.jobs.failed_again.INTERVAL_FACTOR", 0)
    for _ in range(2):
        cells = notifications.cells(user)["bell_html"]
        assert "2 messages processed, 2 failed again" in cells
        assert 'data-state="look"' in cells
        assert 'data-state="good"' not in cells
        gateway().run(gateway().admin.remove(queue("ActiveMQ.DLQ")))


def test_a_job_is_done_with_the_messages_that_its_button_counted(browser_of, console, dead, monkeypatch):
    monkeypatch.setattr("console.messages.jobs.job_service.enqueue", lambda *_args: None)
    operator = browser_of("operator")
    selector = f"order LIKE '{dead}-%'"
    page = operator.get(act("ActiveMQ.DLQ", action="retry", selector=selector))
    count = page.context["chosen"].count
    console.send(f"/queue/{dead}", "later", order=f"{dead}-9")
    refuse_all(console, dead)
    wait_until(lambda: len(failed(dead)) == count + 1, "one more failed meanwhile")
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', text(page)))
    operator.post(act("ActiveMQ.DLQ"), fields | {"selector": selector, "reason": "fixed"})
    job = Job.objects.get()
    worker.run_slice(str(job.id))
    job.refresh_from_db()
    assert (job.state, job.done) == ("done", count)


def test_a_retry_beyond_ones_limit_is_asked_of_an_operator(browser_of, dead, monkeypatch):
    support, operator = browser_of("support"), browser_of("operator")
    monkeypatch.setattr("console.messages.jobs.job_service.enqueue", lambda *_args: None)
    selector = f"dlqRoute LIKE '%/queue/{dead}'"
    asked = support.post(act("ActiveMQ.DLQ"), {"action": "retry", "selector": selector, "reason": "fixed"})
    job = Job.objects.get()
    assert job.state == "asked"
    assert AuditEntry.objects.get(action="retry").outcome == "asked"
    assert support.post(reverse("control-job", kwargs={"job_id": job.id, "action": "approve"})).status_code == 403
    assert "Awaiting approval" in text(operator.get(reverse("jobs") + "?show=asked"))
    assert "goes to exactly one queue" in text(operator.get(asked["Location"])), "what the one who asked saw, too"
    operator.post(reverse("control-job", kwargs={"job_id": job.id, "action": "approve"}))
    job.refresh_from_db()
    assert (job.state, job.approved_by) == ("queued", "operator")
    assert "approved by operator" in text(operator.get(asked["Location"]))


def test_a_number_that_is_none_does_not_mean_all_messages(admin, dead):
    for ask in (admin.get, admin.post):
        assert ask(act("ActiveMQ.DLQ"), {"action": "retry", "seq": "x", "reason": "r"}).status_code == 404
    assert not Job.objects.exists()


def test_a_job_is_controlled_by_who_may_send_to_its_target_too(browser_of, dead, monkeypatch):
    monkeypatch.setattr("console.messages.jobs.job_service.enqueue", lambda *_args: None)
    wish = JobSpec("move", queue("ActiveMQ.DLQ"), queue("salaries"))
    job = start(wish, "ada")
    narrow = browser_of("operator", "ActiveMQ.DLQ")
    body = {"action": "retry", "queue": "ActiveMQ.DLQ", "seqs": [failed(dead)[0].seq], "reason": "r"}
    assert narrow.post("/api/v1/jobs", body, content_type="application/json").status_code == 403
    for action in ("pause", "retry"):
        assert narrow.post(reverse("control-job", kwargs={"job_id": job.id, "action": action})).status_code == 403
    assert narrow.post(f"/api/v1/jobs/{job.id}/pause", content_type="application/json").status_code == 403


def test_what_goes_to_a_virtual_topic_again_fans_out_and_says_who_processed_it(admin, console, name, dead, monkeypatch):
    topic = f"VirtualTopic.{name}"
    for consumer in "AB":
        gateway().create(queue(f"Consumer.{consumer}.{topic}"))
    message = failed(dead)[0]
    monkeypatch.setattr(
        "console.messages.trace_reader.acknowledged_in",
        lambda ids: {each: {f"queue://Consumer.A.{topic}"} for each in ids},
    )
    page = admin.get(act("ActiveMQ.DLQ", action="retry", seq=message.seq, target=f"/topic/{topic}"))
    [blast] = page.context["impact"].groups
    assert blast.sentence == "goes to 2 queues, 1 of which processed it before"
    assert not page.context["impact"].is_safe
    assert "processed it before" in text(page)


def test_who_may_not_resubmit_is_told_which_right_is_missing(browser_of, dead):
    message = failed(dead)[0]
    viewer = browser_of("support", "elsewhere.>", name="scoped")
    response = viewer.post(act("ActiveMQ.DLQ"), {"action": "retry", "seq": message.seq, "reason": "x"})
    assert response.status_code == 403
    elsewhere = browser_of("support", "ActiveMQ.DLQ", name="half")
    response = elsewhere.post(act("ActiveMQ.DLQ"), {"action": "retry", "seq": message.seq, "reason": "x"})
    assert response.status_code == 403  # it would go where one has no right
    assert bodies("ActiveMQ.DLQ").count(message.body.decode()) >= 1


def test_deleting_all_needs_the_name_typed(admin, console, name, monkeypatch):
    monkeypatch.setattr("console.messages.jobs.job_service.enqueue", lambda *_args: None)
    console.send(f"/queue/{name}", "a", "b")
    wrong = admin.post(act(name), {"action": "remove", "typed": "oops"})
    assert wrong.status_code == 400
    assert not Job.objects.exists()
    assert admin.post(act(name), {"action": "remove", "typed": name}).status_code == 302
    assert Job.objects.get().action == "remove"


def test_an_edited_message_is_sent_in_the_place_of_the_old_one(admin, dead):
    message = failed(dead)[0]
    address = reverse("edit-message", kwargs={"name": "ActiveMQ.DLQ", "seq": message.seq})
    draft = admin.get(address).context["form"]
    assert draft.destination == f"/queue/{dead}"
    assert [name for name, *_ in draft.properties] == ["order"]
    form = {
        "destination": draft.destination, "body": '{"n": 99}', "persistent": "true", "reason": "typing error",
        "property-name": ["order"], "property-type": ["text"], "property-value": ["mended"],
    }  # fmt: skip
    page = admin.get(admin.post(address, form)["Location"])
    assert bodies(dead) == ['{"n": 99}']
    assert message.id in text(page)
    [new] = gateway().browse(queue(dead), 0, 5, None).messages
    assert (new.headers["order"], new.headers["resubmittedFrom"]) == ("mended", message.id)
    assert CAUSE not in new.headers


def test_the_form_of_an_edit_says_where_the_destination_now_written_leads(admin, name, dead, monkeypatch):
    topic, message = f"VirtualTopic.{name}", failed(dead)[0]
    for consumer in "AB":
        gateway().create(queue(f"Consumer.{consumer}.{topic}"))
    monkeypatch.setattr(
        "console.messages.trace_reader.acknowledged_in",
        lambda ids: {each: {f"queue://Consumer.A.{topic}"} for each in ids},
    )
    address = reverse("edit-message", kwargs={"name": "ActiveMQ.DLQ", "seq": message.seq})
    assert "goes to exactly one queue" in text(admin.get(address))
    looked = {"look": "1", "destination": f"/topic/{topic}", "body": "x"}
    page = text(admin.post(address, looked))
    assert "goes to 2 queues, 1 of which processed it before" in page
    assert message.id in [each.id for each in failed(dead)], "it is only looked at"
    assert "Enter a destination" in text(admin.post(address, {**looked, "destination": ""}))


def test_who_does_not_see_all_of_a_message_cannot_edit_it(admin, dead):
    MaskingRule.objects.create(place="json", pattern="$.n", action="remove")
    address = reverse("edit-message", kwargs={"name": "ActiveMQ.DLQ", "seq": failed(dead)[0].seq})
    response = admin.get(address)
    assert response.status_code == 409
    assert "masked for your role" in text(response)


def test_an_edited_message_keeps_the_headers_that_the_form_did_not_change(admin, console, name):
    console.send(f"/queue/{name}", "x", persistent="true", priority="7", **{"correlation-id": "c-1"})
    [old] = gateway().browse(queue(name), 0, 5, None).messages
    address = reverse("edit-message", kwargs={"name": name, "seq": old.seq})
    page = text(admin.get(address))
    fields = dict(re.findall(r'<input[^>]* name="([\w-]+)"[^>]* value="([^"]*)"', page))
    assert 'name="persistent" value="true" checked' in page
    admin.post(
        address, {**fields, "body": "y", "kind": "text", "encoding": "text", "persistent": "true", "reason": "r"}
    )
    [new] = gateway().browse(queue(name), 0, 5, None).messages
    assert (new.body, new.headers["priority"], new.headers["correlation-id"]) == (b"y", "7", "c-1")
    assert new.headers["persistent"] == "true"


EDIT = {
    "action": "edit", "reason": "r", "property-name": ["region"], "property-type": ["text"], "property-value": ["us"],
    "encoding": "keep",
}  # fmt: skip


def test_all_that_match_are_edited_after_a_look_at_the_first_one(admin, console, name, monkeypatch):
    monkeypatch.setattr("console.messages.jobs.job_service.enqueue", lambda *_args: None)
    console.send(f"/queue/{name}", "a", "b", region="eu")
    form = {**EDIT, "selector": "region = 'eu'"}
    look = admin.post(act(name), {**form, "look": "1"})
    assert "2 messages match" in text(look)
    [changed] = [row for row in look.context["preview"].rows if row.kind != "same"]
    assert (changed.name, changed.before, changed.after) == ("region", "eu", "us")
    assert [blast.sentence for blast in look.context["impact"].groups] == ["goes to exactly one queue"]
    assert not Job.objects.exists()
    wrong = admin.post(act(name), {**form, "property-type": ["number"], "look": "1"})
    assert "is not a number" in text(wrong)
    page = admin.get(admin.post(act(name), form)["Location"])
    job = Job.objects.get()
    assert dict(page.context["changes"]) == {"region": "us"}
    entry = AuditEntry.objects.get(action="edit", outcome="done")
    assert (entry.before["edit"], entry.before["selector"]) == ("region: us", "region = 'eu'")
    worker.run_slice(str(job.id))
    messages = gateway().browse(queue(name), 0, 5, None).messages
    assert [(each.body, each.headers["region"]) for each in messages] == [(b"a", "us"), (b"b", "us")]


def test_a_few_are_edited_at_once_and_one_on_the_page_for_one(browser_of, console, name):
    console.send(f"/queue/{name}", "a", "b", region="eu")
    first, second = gateway().browse(queue(name), 0, 5, None).messages
    operator = browser_of("operator")
    done = operator.post(act(name), {**EDIT, "seq": [first.seq, second.seq]})
    assert done.status_code == 302
    assert bodies(name) == ["a", "b"]
    one = operator.get(act(name, action="edit", seq=first.seq))
    assert one["Location"] == reverse("edit-message", args=[name, first.seq])


def test_who_may_not_edit_or_not_see_all_gains_nothing_by_it(browser_of, console, name):
    console.send(f"/queue/{name}", '{"card": "4111"}', '{"card": "4112"}', region="eu")
    seqs = [each.seq for each in gateway().browse(queue(name), 0, 5, None).messages]
    support = browser_of("support").post(act(name), {**EDIT, "seq": seqs})
    assert support.status_code == 403
    MaskingRule.objects.create(place="json", pattern="$.card", action="remove")
    operator = browser_of("operator")
    look = operator.post(act(name), {**EDIT, "seq": seqs, "look": "1"})
    assert look.context["preview"].is_hidden
    assert "4111" not in text(look)
    operator.post(act(name), {**EDIT, "seq": seqs})
    assert {row.outcome for row in Job.objects.get().outcomes.all()} == {"refused"}
    assert [each.seq for each in gateway().browse(queue(name), 0, 5, None).messages] == seqs


# -- dead letters


def test_dead_letters_are_grouped_by_cause_and_origin(browser_of, dead):
    page = browser_of("support").get(reverse("dead-letters") + f"?q={dead}")
    [row] = page.context["rows"]
    group = row["group"]
    assert group.count == 3
    assert group.origin == f"/queue/{dead}"
    found = gateway().browse(queue("ActiveMQ.DLQ"), 0, 50, group.selector).messages
    assert {each.original_destination for each in found} == {f"/queue/{dead}"}
    assert len(found) == 3
    steps = page.context["steps"]
    assert sum(count for _, count in steps) == page.context["recent"] >= 3, "the trend as a table tells the same"


def test_groups_of_dead_letters_come_in_pages(admin, console, dead, monkeypatch):
    monkeypatch.setattr("console.messages.views.dead_letters.PAGE", 1)
    console.send("/queue/ActiveMQ.DLQ", "put there by hand")

    def page(number: int):
        return admin.get(reverse("dead-letters"), {"page": number, "sort": "count"}).context["page"]

    wait_until(lambda: page(1).paginator.count > 1, "two groups")
    assert page(1)[0] != page(2)[0]
    assert "sort=count&amp;page=2" in text(admin.get(reverse("dead-letters"), {"sort": "count"}))


def test_without_dead_letters_that_is_good_news(admin, console, monkeypatch):
    monkeypatch.setattr("console.messages.dead_letter_survey.is_dead_letter_queue", lambda stats: False)
    assert "No dead letters" in text(admin.get(reverse("dead-letters")))


# -- journeys and search


def test_a_message_tells_its_journey_and_who_sent_it_again(browser_of, dead, monkeypatch):
    monkeypatch.setattr(
        "console.messages.trace_reader.events_of.__defaults__", (20.0,)
    )  # a busy machine reads less in a second
    support, message = browser_of("support"), failed(dead)[0]
    support.post(act("ActiveMQ.DLQ"), {"action": "retry", "seq": message.seq, "reason": "billing is back"})
    address = reverse("message-page", kwargs={"id": message.id})

    def told():
        journey = support.get(address).context["journey"]
        return journey if [step.kind for step in journey.steps].count("forward") == 3 else None

    journey = wait_until(told, "the journey")
    words = [step.label for step in journey.steps]
    assert words[0] == "Sent to"
    assert words.index("Dispatched to consumer of") < words.index("Failed in") < words.index("Resubmitted")
    assert [step.action.reason for step in journey.steps if step.action] == ["billing is back"]
    assert {copy.destination.name: copy.state for copy in journey.copies} == {dead: "waiting", "ActiveMQ.DLQ": "taken"}
    assert "billing is back" in text(support.get(address))
    fate = reverse("resubmit-outcome", kwargs={"id": message.id}) + "?since=0"
    wait_until(lambda: "Stored in" in text(support.get(fate)), "its fate")  # a look on a busy machine may end early


def test_the_page_of_a_message_that_was_just_edited_mends_itself_when_the_trace_has_come(admin, dead, monkeypatch):
    seen = [TraceSearchResult()]
    monkeypatch.setattr("console.messages.trace_reader.events_of", lambda *_: seen[0])
    message = failed(dead)[0]
    form = {"destination": f"/queue/{dead}", "body": "mended", "persistent": "true", "reason": "typing error"}
    edited = admin.post(reverse("edit-message", kwargs={"name": "ActiveMQ.DLQ", "seq": message.seq}), form)
    address, waiting = edited["Location"], {"HX-Request": "true", "HX-Target": "awaits-trace"}
    assert "Waiting for trace data" in text(admin.get(address))
    assert "No trace events recorded yet" not in text(admin.get(address))
    again = admin.get(address, headers=waiting)
    assert 'hx-trigger="load delay:2s"' in text(again)
    assert "HX-Refresh" not in again
    id = unquote(address.removeprefix("/messages/").removesuffix("/"))
    now_us, place = int(time.time() * 1e6), f"queue://{dead}"
    seen[0] = TraceSearchResult([TraceEvent(now_us, "enqueue", id, place, place, None, 6, now_us, None, {})])
    assert admin.get(address, headers=waiting)["HX-Refresh"] == "true"
    assert "Waiting for trace data" not in text(admin.get(address))
    seen[0] = TraceSearchResult()
    monkeypatch.setattr("console.messages.journey.journey.TRACE_DELAY", timedelta(0))
    assert admin.get(address, headers=waiting)["HX-Refresh"] == "true", "it does not ask for ever"
    assert "No trace events recorded yet" in text(admin.get(address))


def test_who_may_not_see_where_a_message_went_does_not_wait_for_what_they_are_not_told(browser_of, dead, monkeypatch):
    now, place = timezone.now(), f"queue://{dead}"
    steps = [
        JourneyStep(
            now - timedelta(seconds=2), "deed", "Resubmitted", queue(dead), action=OperatorAction(now, "ada", "", place)
        ),
        JourneyStep(now, "forward", "Copied to", queue("hidden.target")),
    ]
    monkeypatch.setattr("console.messages.views.message.journey_of", lambda *_: Journey("m", steps))
    page = browser_of("support", dead).get(reverse("message-page", kwargs={"id": "m"}))
    assert "hidden.target" not in text(page)
    assert "Waiting for trace data" not in text(page)


def test_the_page_of_a_dead_letter_says_how_many_failed_like_it(browser_of, dead):
    message = failed(dead)[0]
    address = reverse("message-page", kwargs={"id": message.id}) + f"?queue=ActiveMQ.DLQ&seq={message.seq}"
    page = browser_of("support").get(address)
    assert page.status_code == 200
    assert page.context["similar"].count == 3
    assert "3 similar dead letters" in text(page)


def test_a_message_nobody_knows_is_said_to_be_unknown(admin, console, monkeypatch):
    # On a busy machine the second that a page waits may pass before all of the trace was read.
    monkeypatch.setattr("console.messages.trace_reader.events_of.__defaults__", (20.0,))
    response = admin.get(reverse("message-page", kwargs={"id": "ID:nobody:1"}))
    assert response.status_code == 404
    assert "Message not found" in text(response)


def test_a_look_at_a_journey_that_ended_early_does_not_deny_it(admin, console, monkeypatch):
    monkeypatch.setattr("console.messages.trace_reader.events_of", lambda *_: TraceSearchResult(complete=False))
    response = admin.get(reverse("message-page", kwargs={"id": "ID:nobody:1"}))
    assert response.status_code == 200
    assert "was not searched completely" in text(response)
    assert "Retry search" in text(response)
    assert "Nothing was recorded" not in text(response)


def test_a_search_that_ended_early_denies_nothing_and_leads_on(admin, console, monkeypatch):
    monkeypatch.setattr(
        "console.messages.search.lookup.trace_reader.search", lambda *_: TraceSearchResult(complete=False)
    )
    page = text(admin.get(reverse("find-messages"), {"q": "ID:late:1"}))
    assert "No matching messages in the scanned part" in page
    assert reverse("message-page", kwargs={"id": "ID:late:1"}) in page


def test_the_search_says_of_an_edited_dead_letter_what_its_page_says(admin, dead, monkeypatch):
    message, place, now_us = failed(dead)[0], "queue://ActiveMQ.DLQ", int(time.time() * 1e6)
    sent, came = (
        TraceEvent(now_us, kind, message.id, where, f"queue://{dead}", None, 6, now_us, None, {})
        for kind, where in (("enqueue", f"queue://{dead}"), ("forward", place))
    )
    form = {"destination": f"/queue/{dead}", "body": "mended", "persistent": "true", "reason": "typing error"}
    admin.post(reverse("edit-message", kwargs={"name": "ActiveMQ.DLQ", "seq": message.seq}), form)
    monkeypatch.setattr("console.messages.journey.journey.TRACE_DELAY", timedelta(0))
    monkeypatch.setattr("console.messages.trace_reader.search", lambda *_: TraceSearchResult([sent]))
    monkeypatch.setattr("console.messages.trace_reader.events_of", lambda *_: TraceSearchResult([sent, came]))
    page = text(admin.get(reverse("message-page", kwargs={"id": message.id})))
    found = text(admin.get(reverse("find-messages"), {"q": message.id}))
    assert "removed by an operator" in page
    assert "Removed by an operator" in found
    assert "Stored in" not in found


def test_a_message_consumed_meanwhile_leads_to_its_permanent_page(admin, console, name):
    console.send(f"/queue/{name}", "x")
    address = reverse("message", kwargs={"name": name, "seq": 999}) + "?id=ID:gone:1"
    page = reverse("message-page", kwargs={"id": "ID:gone:1"})
    assert page in admin.get(address, headers={"HX-Request": "true"}).content.decode()
    assert admin.get(address).headers["Location"] == page


def test_the_search_finds_dead_letters_by_an_indexed_property_within_ones_scope(browser_of, dead):
    address = reverse("find-messages") + f"?q=order:{dead}-1"
    hits = browser_of("support").get(address).context["found"].hits
    assert (hits[0].state, hits[0].destination.name, hits[0].why) == ("dead", "ActiveMQ.DLQ", "order")
    assert browser_of("support", "elsewhere.>", name="scoped").get(address).context["found"].hits == []
    by_id = browser_of("admin").get(reverse("find-messages") + f"?q={hits[0].id}").context["found"]
    assert by_id.hits[0].why == "message id"


# -- sending


def test_a_test_message_says_where_it_went(admin, console, name):
    form = {
        "destination": name, "body": "hello", "count": "2", "priority": "7", "persistent": "true",
        "property-name": ["n", ""], "property-type": ["int", "string"], "property-value": ["5", ""],
        "field-correlation-id": "c-1",
    }  # fmt: skip
    page = admin.post(reverse("send"), form)
    assert [each.name for each, _ in page.context["sent"]["queues"]] == [name]
    first, second = gateway().browse(queue(name), 0, 5, None).messages
    assert first.headers["n"] == "5"
    assert (second.headers["correlation-id"], second.headers["priority"]) == ("c-1", "7")
    assert AuditEntry.objects.get(action="send").after["queues"] == [f"queue://{name}"]


WRONG = [
    ({"destination": ""}, "Enter a destination"),
    ({"count": "0"}, "count: '0' must be a whole number from 1"),
    ({"priority": "10"}, "priority: '10'"),
    ({"property-name": ["n"], "property-type": ["int"], "property-value": ["five"]}, "'five' is not an int"),
    ({"property-name": ["priority"], "property-type": ["text"], "property-value": ["5"]}, "use its own field"),
    (
        {"property-name": ["JMSXUserID"], "property-type": ["text"], "property-value": ["eve"]},
        "reserved for the broker",
    ),
    ({"property-name": ["sentBy"], "property-type": ["text"], "property-value": ["eve"]}, "is set by the broker"),
    ({"body": "%", "encoding": "base64"}, "invalid base64"),
    ({"cron": "whenever"}, "five fields"),
    ({"repeat": "3"}, "repeat requires a repeat interval"),
]


@pytest.mark.parametrize(("wrong", "sentence"), WRONG, ids=[each[1] for each in WRONG])
def test_a_wrong_field_is_named_with_its_rule(admin, console, wrong, sentence):
    page = admin.post(reverse("send"), {"destination": "never", "body": "x", **wrong})
    assert page.status_code == 400
    assert sentence.replace("'", "&#x27;") in text(page)


def test_all_wrong_properties_are_named_at_once_and_empty_rows_do_not_multiply(admin, console, name):
    rows = {
        "property-name": ["a", "sentBy", "b", ""],
        "property-type": ["int", "string", "boolean", "string"],
        "property-value": ["five", "eve", "maybe", ""],
    }
    page = admin.post(reverse("send"), {"destination": name, "body": "x", **rows})
    assert page.status_code == 400
    for part in ("property 'a': 'five'", "'sentBy' is set by the broker", "property 'b': 'maybe'"):
        assert part in page.context["error"]
    assert [row[0] for row in page.context["form"].properties] == ["a", "sentBy", "b"]
    right = {**rows, "property-name": ["a", "", "", ""], "property-value": ["5", "", "", ""]}
    sent = admin.post(reverse("send"), {"destination": name, "body": "x", **right})
    assert (sent.status_code, [row[0] for row in sent.context["form"].properties]) == (200, ["a"])


def test_a_template_is_kept_and_filled_in_again(admin, browser_of, console):
    form = {"destination": "orders", "body": "kept", "do": "keep", "template-name": "mine", "template-shared": "true"}
    admin.get(admin.post(reverse("send"), form)["Location"])
    template = Template.objects.get()
    other = browser_of("operator")
    page = other.get(reverse("send") + f"?template={template.pk}")
    assert page.context["form"].body == "kept"
    assert other.post(reverse("template-delete", kwargs={"template_id": template.pk})).status_code == 404
    admin.post(reverse("template-delete", kwargs={"template_id": template.pk}))
    assert not Template.objects.exists()


def test_what_is_scheduled_is_listed_and_can_be_taken_back(admin, console, name):
    admin.post(reverse("send"), {"destination": name, "body": "later", "delay": "3600", "persistent": "true"})
    [row] = [row for row in admin.get(reverse("scheduled")).context["rows"] if row.targets == (queue(name),)]
    assert 3500 < row.due.timestamp() - time.time() < 3700
    admin.post(reverse("cancel-scheduled"), {"job": row.message.job})
    assert all(each.message.job != row.message.job for each in admin.get(reverse("scheduled")).context["rows"])
    again = admin.post(reverse("cancel-scheduled"), {"job": row.message.job})
    assert again.status_code == 409


# -- browsing


def test_the_newest_page_and_the_one_before_are_found_without_counting(admin, console, name, wait_for_mirror):
    console.send(f"/queue/{name}", "first")
    gateway().send({"destination": name, "body": ""}, 118, "")
    console.send(f"/queue/{name}", "last")
    wait_for_mirror(name, 120)
    address = reverse("messages", kwargs={"name": name})
    newest = admin.get(address + "?end=1").context
    assert (len(newest["rows"]), newest["rows"][0].message.body) == (50, b"last")
    before = admin.get(address + newest["older"]).context
    assert before["rows"][0].message.seq < newest["rows"][-1].message.seq
    chosen = {"selector": "JMSPriority >= 0"}
    assert "50 of 120 matching messages shown" in text(admin.get(address, chosen))
    moving = admin.get(act(name), {"action": "move", "target": f"{name}.to"} | chosen)
    assert "Move 120 messages" in text(moving)
    assert "first 100 of 120" in text(moving)
    assert str(gateway().run(gateway().admin.count(queue(name), selector="JMSPriority >= 0", scan=60))) == "at least 60"
    moment = admin.get(address + "?at=2000-01-01T00:00")
    assert admin.get(moment["Location"]).context["rows"][0].message.body == b"first"
    assert admin.get(address + "?at=yesterday").status_code == 409
    followed = admin.get(
        address + f"?after={newest['last'] - 1}", headers={"HX-Request": "true", "HX-Target": "follow"}
    )
    assert text(followed).count("<tr") == 1


def test_the_newest_that_match_are_found_from_the_end_and_the_ones_before_page_by_page(
    admin, console, name, wait_for_mirror
):
    for number in range(130):
        console.send(f"/queue/{name}", str(number), kind="odd" if number % 2 else "even")
    wait_for_mirror(name, 130)
    address, odd = reverse("messages", kwargs={"name": name}), list(range(1, 130, 2))

    def shown(answer) -> list[int]:
        return [int(row.message.body) for row in answer.context["rows"]]

    oldest = admin.get(address, {"selector": "kind = 'odd'"})
    newest = admin.get(address + oldest.context["newest"])
    assert shown(newest) == odd[:-51:-1]
    assert "50 of 65 matching messages shown" in text(newest)
    assert admin.get(address + newest.context["oldest"]).context["browse"] == oldest.context["browse"]
    older = admin.get(address + newest.context["older"])
    assert (shown(older), older.context["older"]) == (odd[-51::-1], None)
    assert shown(admin.get(address + older.context["newer"])) == odd[:-51:-1]
    again = admin.get(address, {"selector": "kind = 'even'", "end": "1"})  # as the form sends it from there
    assert shown(again)[0] == 128


@pytest.mark.parametrize("selector", ["", "JMSPriority >= 0"], ids=["all", "those that match"])
@pytest.mark.parametrize("order", ["oldest", "newest"])
def test_either_order_pages_through_all_and_back_and_keeps_its_order(
    admin, console, name, wait_for_mirror, order, selector
):
    gateway().send({"destination": name, "body": ""}, 120, "")
    wait_for_mirror(name, 120)
    address = reverse("messages", kwargs={"name": name})

    def shown(query: str) -> tuple[list[int], dict]:
        context = admin.get(address + query).context
        return [row.message.seq for row in context["rows"]], {rel: url for rel, url, _ in context["turns"]}

    start = admin.get(address, {"selector": selector}).context[order]
    first, turns = shown(start)
    assert "prev" not in turns
    second, turns = shown(turns["next"])
    third, ends = shown(turns["next"])
    there = first + second + third
    assert "next" not in ends
    assert len(set(there)) == 120
    assert there == sorted(there, reverse=order == "newest")
    assert shown(ends["prev"])[0] == second
    assert shown(turns["prev"])[0] == first
    reached = admin.get(address, {"at": third[0], "end": "1" if order == "newest" else "0", "selector": selector})
    assert shown("?" + reached["Location"].partition("?")[2])[0] == third


def test_a_page_says_its_order_and_offers_the_other_one(admin, console, name, wait_for_mirror):
    gateway().send({"destination": name, "body": ""}, 3, "")
    wait_for_mirror(name, 3)
    address = reverse("messages", kwargs={"name": name})
    for query, order in (("", "Oldest first"), ("?end=1", "Newest first"), ("?selector=TRUE&end=1", "Newest first")):
        page = text(admin.get(address + query))
        assert f'aria-current="true">{order}</a>' in page
        assert page.count("Oldest first</a>") == page.count("Newest first</a>") == 1


def test_following_with_a_selector_begins_with_the_newest_and_stopping_stays_there(
    admin, console, name, wait_for_mirror
):
    for number in range(60):
        console.send(f"/queue/{name}", str(number), kind="odd" if number % 2 else "even")
    wait_for_mirror(name, 60)
    address, chosen = reverse("messages", kwargs={"name": name}), {"selector": "kind = 'odd'"}
    followed = admin.get(address + admin.get(address, chosen).context["follow"])
    assert [int(row.message.body) for row in followed.context["rows"]] == list(range(59, 0, -2))
    stopped = admin.get(address + followed.context["newest"]).context
    assert (stopped["browse"].at_end, stopped["switch"], len(stopped["rows"])) == (True, True, 30)
    nothing = admin.get(address, {"selector": "kind = 'none'", "end": "1", "follow": "1"}).context
    assert nothing["last"] == followed.context["last"] == gateway().last(queue(name))
    console.send(f"/queue/{name}", "60", kind="odd")
    more = admin.get(
        address, chosen | {"after": followed.context["last"]}, headers={"HX-Request": "true", "HX-Target": "follow"}
    )
    assert text(more).count("<tr") == 1


def test_following_gets_on_past_more_that_does_not_match_than_one_look_takes(admin, console, name, monkeypatch):
    monkeypatch.setattr("console.broker.gateway.Gateway.browse.__defaults__", (20,))
    gateway().send({"destination": name, "body": "", "properties": {"kind": "dull"}}, 50, "")
    following = {"HX-Request": "true", "HX-Target": "follow"}
    address, last = reverse("messages", kwargs={"name": name}), 0
    for _ in range(2):
        part = admin.get(address, {"selector": "kind = 'rare'", "after": last}, headers=following)
        assert 'data-more="true"' in text(part)
        assert part.context["last"] > last
        last = part.context["last"]


def test_a_look_that_ends_early_says_so_and_goes_on(admin, console, name, monkeypatch):
    monkeypatch.setattr("console.broker.gateway.Gateway.browse.__defaults__", (20,))
    gateway().send({"destination": name, "body": "", "properties": {"kind": "dull"}}, 50, "")
    console.send(f"/queue/{name}", "found", kind="rare")
    address = reverse("messages", kwargs={"name": name}) + "?selector=kind='rare'"
    page = admin.get(address)
    assert page.context["page"].scanned == 20
    assert "Partial result" in text(page)
    for _ in range(2):
        assert "Scan newer messages</a>" in text(page)
        page = admin.get(reverse("messages", kwargs={"name": name}) + page.context["newer"])
    assert [row.message.body for row in page.context["rows"]] == [b"found"]


def test_a_look_back_that_ends_early_says_so_and_goes_further_back(admin, console, name, monkeypatch):
    monkeypatch.setattr("console.broker.gateway.Gateway.browse_back.__defaults__", (20,))
    monkeypatch.setattr("console.broker.gateway.SCAN", 20)
    console.send(f"/queue/{name}", "found", kind="rare")
    gateway().send({"destination": name, "body": "", "properties": {"kind": "dull"}}, 50, "")
    address = reverse("messages", kwargs={"name": name})
    page = admin.get(address + "?selector=kind='rare'&end=1")
    assert "20 messages scanned." in text(page)
    assert "newest 20 of 51 messages scanned" in " ".join(text(page).split())
    for _ in range(2):
        assert "Scan older messages" in text(page)
        page = admin.get(address + page.context["older"])
    assert [row.message.body for row in page.context["rows"]] == [b"found"]


def test_a_look_that_takes_too_long_ends_in_time_and_says_how_far_it_came(admin, console, name, monkeypatch):
    monkeypatch.setattr("console.broker.gateway.LOOK", 0.0)  # as on a machine that has no time
    monkeypatch.setattr("brokerapp.admin.browsing.BROWSE_PAGE", 20)
    gateway().send({"destination": name, "body": ""}, 50, "")
    chosen = {"selector": "JMSPriority >= 0"}
    listed = text(admin.get(reverse("messages", kwargs={"name": name}), chosen))
    assert "20 of at least 20 matching messages shown" in listed
    assert "20 of 50 messages scanned" in listed
    asked = text(admin.get(act(name), {"action": "move", "target": f"{name}.to"} | chosen))
    assert "At least 20 messages; 20 of 50 scanned" in asked
    assert "Move at least 20 messages" in asked


def test_a_selector_is_kept_for_oneself_or_for_all(admin, browser_of, console, name):
    console.send(f"/queue/{name}", "x")
    address = reverse("save-selector", kwargs={"name": name})
    admin.post(address, {"selector": "a = 1", "title": "ones", "shared": "true"})
    saved = SavedSelector.objects.get()
    kept = AuditEntry.objects.get(action="keep selector")
    assert (kept.before, kept.after["text"]) == (None, "a = 1")  # it is new: nothing was before it
    other = browser_of("support")
    assert list(other.get(reverse("messages", kwargs={"name": name})).context["saved"]) == [saved]
    assert other.post(reverse("selector-delete", kwargs={"name": name, "saved_id": saved.pk})).status_code == 404
    assert admin.post(address, {"selector": "a =", "title": "wrong"}).status_code == 409


def test_a_body_is_downloaded_whole(admin, console, name):
    console.send(f"/queue/{name}", "x" * 300_000)
    [message] = gateway().browse(queue(name), 0, 1, None).messages
    response = admin.get(reverse("message-body", kwargs={"name": name, "seq": message.seq}))
    assert len(response.content) == 300_000
    assert response["Content-Disposition"].startswith("attachment")
    panel = admin.get(reverse("message", kwargs={"name": name, "seq": message.seq}), headers={"HX-Request": "true"})
    assert len(panel.content) < 600_000
    assert "of 300,000 bytes" in text(panel)


def test_a_queue_shows_its_message_groups_and_forgets_them(admin, console, name, wait_for_mirror):
    client = console.client()
    client.subscribe(f"/queue/{name}", id="1", ack="client-individual")
    console.send(f"/queue/{name}", "x", JMSXGroupID="g-1")
    address = reverse("queue", kwargs={"name": name}) + "?tab=issues"
    wait_for_mirror(name, 1)
    assert wait_until(lambda: admin.get(address).context["groups"], "the group")[0][0] == "g-1"
    assert "RedeliveredCount" in text(admin.get(address))
    admin.post(reverse("reset-groups", kwargs={"name": name}), {"group": "g-1"})
    assert admin.get(address).context["groups"] == []


def test_a_retry_by_selector_takes_nothing_back_to_where_its_user_has_no_right(dead, db, monkeypatch):
    monkeypatch.setattr(job_service, "enqueue", lambda *_: None)
    make_user("operator", "ActiveMQ.DLQ", name="olga")
    wish = JobSpec("retry", queue("ActiveMQ.DLQ"), selector=f"order LIKE '{dead}-%'", reason="fixed")
    job = start(wish, "olga")
    assert worker.run_slice(str(job.id)) == "done"
    assert len(failed(dead)) == 3
    assert {(each.outcome, each.detail.partition(" for ")[2].partition(": ")[0]) for each in job.outcomes.all()} == {
        ("refused", f"queue://{dead}")
    }
