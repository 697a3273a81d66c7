"""Test jobs on messages: requested by users, executed by workers in steps, with an outcome for each message."""

import time
from types import SimpleNamespace

import pytest
from django.utils import timezone

from brokerapp.engine.editing.message_edit import MessageEdit
from brokerapp.errors import RequestRefused, SelectorSyntaxError, StoreUnavailable
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsePage, MatchCount
from console.access.models import MaskingRule
from console.broker.gateway import gateway
from console.messages.jobs import failed_again, job_service, worker
from console.messages.jobs.models import Job, JobOutcome
from console.messages.jobs.spec import JobSpec
from console.messages.journey.journey import OperatorAction
from console.messages.journey.journey_service import operator_actions
from tests.console.conftest import make_user

State, Outcome = Job.State, JobOutcome.Outcome
queue = Destination.queue
names = iter(range(1_000))

pytestmark = pytest.mark.django_db


@pytest.fixture
def name(console, monkeypatch) -> str:
    """A queue of ten messages; every other one is even. No worker is called: tests do its work."""
    monkeypatch.setattr(job_service, "enqueue", lambda *_args: None)
    name = f"jobs.{next(names)}"
    for number in range(10):
        console.send(f"/queue/{name}", str(number), parity="odd" if number % 2 else "even")
    return name


def bodies(name: str) -> list[str]:
    return [each.body.decode() for each in gateway().browse(queue(name), 0, 500, None).messages]


def seqs(name: str) -> list[int]:
    return [each.seq for each in gateway().browse(queue(name), 0, 500, None).messages]


def finish(job: Job) -> Job:
    while not Job.objects.get(id=job.id).is_final:
        worker.run_slice(str(job.id))
    job.refresh_from_db()
    return job


def deeds_of_one(id: str) -> list[OperatorAction]:
    return operator_actions([id])[id]


def outcomes(job: Job) -> list[tuple[str, str]]:
    return list(job.outcomes.values_list("outcome", "detail"))


def test_messages_that_match_a_selector_are_moved_in_order_with_an_outcome_for_each(name):
    to = queue(f"{name}.to")
    job = finish(job_service.start(JobSpec("move", queue(name), to, selector="parity = 'odd'"), "ada"))
    assert (job.state, job.done, job.failed, job.scanned) == (State.DONE, 5, 0, 10)
    assert bodies(to.name) == list("13579")
    assert bodies(name) == list("02468")
    assert set(outcomes(job)) == {("done", str(to))}
    assert all(job.outcomes.values_list("message_id", flat=True))


def test_what_comes_after_the_job_was_asked_for_is_left_alone(name, console):
    job = job_service.start(JobSpec("remove", queue(name)), "ada")
    console.send(f"/queue/{name}", "late")
    assert finish(job).done == 10
    assert bodies(name) == ["late"]


def test_a_selection_is_dealt_with_and_what_is_gone_is_said_to_be(name):
    first, second, *_ = seqs(name)
    gateway().step("remove", queue(name), [first], None, "eve")
    job = finish(job_service.start(JobSpec("remove", queue(name), seqs=(first, second)), "ada"))
    assert (job.state, job.done, job.failed) == (State.DONE, 1, 1)
    assert [outcome for outcome, _ in outcomes(job)] == ["gone", "done"]


def test_a_paused_job_goes_on_at_its_place_and_a_cancelled_one_leaves_the_rest(name, monkeypatch):
    monkeypatch.setattr(worker, "STEP_SIZE", 4)
    job = job_service.start(JobSpec("move", queue(name), queue(f"{name}.to")), "ada")
    steps = []

    real = worker._step

    def step_then_pause(job, rows):
        count = real(job, rows)
        if len(steps) == 0:
            job_service.pause(job, "eve")
        steps.append(count)
        return count

    monkeypatch.setattr(worker, "_step", step_then_pause)
    assert worker.run_slice(str(job.id)) == State.PAUSED
    job.refresh_from_db()
    assert (job.done, job.note) == (4, "Paused by eve.")
    assert worker.run_slice(str(job.id)) == "not mine"
    assert job_service.resume(job)
    monkeypatch.setattr(worker, "SLICE_SECONDS", 0.0)
    assert job_service.cancel(job, "eve")
    assert not job_service.resume(job)
    assert len(bodies(name)) == 6
    assert bodies(f"{name}.to") == list("0123")


def test_progress_is_what_is_done_with_and_not_what_was_looked_at(name, monkeypatch):
    monkeypatch.setattr(
        worker, "_step_size", lambda job: 1
    )  # all ten are looked at at once, five wait to be dealt with
    job = job_service.start(JobSpec("move", queue(name), queue(f"{name}.to"), selector="parity = 'odd'"), "ada")
    shares, real = [], worker._step

    def step(job, rows):
        count = real(job, rows)
        job.refresh_from_db()
        shares.append((job_service.job_cells(job)["progress"], job.scanned))
        return count

    monkeypatch.setattr(worker, "_step", step)
    finish(job)
    assert shares == [(0.6, 10), (0.7, 10), (0.8, 10), (0.9, 10), (1.0, 10)]


@pytest.fixture
def ada(db):
    """Somebody whose jobs may edit: what of a message is masked is decided for who asked."""
    return make_user("operator", name="ada")


def test_messages_that_match_are_edited_and_what_they_became_is_told_of_each(name, ada, monkeypatch):
    monkeypatch.setattr(worker, "STEP_SIZE", 2)
    edit = MessageEdit({"parity": "none", "n": "5"})
    job = finish(
        job_service.start(JobSpec("edit", queue(name), selector="parity = 'odd'", edit=edit, reason="r"), "ada")
    )
    assert (job.state, job.done, job.failed) == (State.DONE, 5, 0)
    assert bodies(name) == list("0246813579")
    new = {each.id: each.headers for each in gateway().browse(queue(name), 0, 500, "n = 5").messages}
    rows = list(job.outcomes.all())
    assert {row.new_id for row in rows} == set(new)
    assert all(new[row.new_id]["resubmittedFrom"] == row.message_id for row in rows)
    assert {each["parity"] for each in new.values()} == {"none"}
    assert job_service.removed_by(queue(name), rows[0].seq).startswith("Edited by ada")
    assert [deed.new_id for deed in deeds_of_one(rows[0].message_id)] == [rows[0].new_id]
    assert [deed.old_id for deed in deeds_of_one(rows[0].new_id)] == [rows[0].message_id]


def test_what_is_masked_for_who_edits_is_left_alone_and_may_be_edited_by_who_sees_it(name, ada):
    MaskingRule.objects.create(place="header", pattern="parity", action="remove", role="operator")
    make_user("admin", name="eve")
    few = tuple(seqs(name)[:2])
    job = finish(
        job_service.start(JobSpec("edit", queue(name), seqs=few, edit=MessageEdit({"n": "1"}), reason="r"), "ada")
    )
    assert {outcome for outcome, _ in outcomes(job)} == {"refused"}
    assert "masked for ada" in outcomes(job)[0][1]
    assert bodies(name) == list("0123456789")
    again = finish(job_service.retry_failed(job, "eve"))
    assert (again.done, again.failed) == (2, 0)
    assert bodies(name) == list("2345678901")


def test_who_kept_the_original_is_not_said_to_have_taken_it(name, ada):
    [first, *_] = seqs(name)
    edit = MessageEdit({"n": "1"}, keeps=True)
    job = finish(
        job_service.start(JobSpec("edit", queue(name), queue(f"{name}.to"), (first,), edit=edit, reason="r"), "ada")
    )
    assert (job.done, bodies(f"{name}.to")) == (1, ["0"])
    assert job_service.removed_by(queue(name), first) == ""
    assert [deed.leaves for deed in deeds_of_one(job.outcomes.get().message_id)] == [False]


def test_an_account_that_is_gone_edits_nothing(name):
    edit = MessageEdit({"n": "1"})
    job = finish(
        job_service.start(JobSpec("edit", queue(name), seqs=tuple(seqs(name)[:1]), edit=edit, reason="r"), "nobody")
    )
    [(outcome, why)] = outcomes(job)
    assert (outcome, why.split(",")[0]) == ("refused", "account nobody")


def killed_after_the_step(monkeypatch):
    """The worker ends between the broker's answer and its note of it."""

    def killed(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr(worker, "_record_outcomes", killed)


@pytest.mark.parametrize(
    ("action", "expected", "edit"),
    [
        ("move", Outcome.DONE, None),
        ("remove", Outcome.DONE, None),
        ("copy", Outcome.UNKNOWN, None),
        ("edit", Outcome.DONE, MessageEdit({"n": "1"})),
        ("edit", Outcome.UNKNOWN, MessageEdit({"n": "1"}, keeps=True)),
    ],
)
def test_a_job_whose_worker_was_killed_goes_on_and_does_nothing_twice(name, action, expected, edit, ada, monkeypatch):
    target = None if action == "remove" else queue(f"{name}.to")
    job = job_service.start(JobSpec(action, queue(name), target, edit=edit, reason="r"), "ada")
    with monkeypatch.context() as patch:
        killed_after_the_step(patch)
        with pytest.raises(KeyboardInterrupt):
            worker.run_slice(str(job.id))
    assert worker.run_slice(str(job.id)) == "not mine"  # it may still be alive
    Job.objects.filter(id=job.id).update(lease=None)
    assert worker.wake_lost_jobs() == 1
    finish(job)
    assert {outcome for outcome, _ in outcomes(job)} == {expected}
    if target:
        assert sorted(bodies(target.name)) == list("0123456789")
    job.refresh_from_db()
    assert ("may already be in queue://" in job.note) == (expected == Outcome.UNKNOWN)


def test_what_failed_can_be_tried_again_as_a_job_of_its_own(name, console):
    job = finish(job_service.start(JobSpec("retry", queue(name), reason="fixed", seqs=tuple(seqs(name)[:3])), "ada"))
    assert {outcome for outcome, _ in outcomes(job)} == {"refused"}
    again = finish(job_service.retry_failed(job, "eve"))
    assert (again.part_of, again.expected, again.failed) == (job, 3, 3)
    assert len(bodies(name)) == 10


def test_a_rate_spreads_the_work_over_time(name, monkeypatch):
    slept = []  # by the job alone: other threads sleep, too
    monkeypatch.setattr(worker, "time", SimpleNamespace(monotonic=time.monotonic, sleep=slept.append))
    finish(job_service.start(JobSpec("remove", queue(name), rate=5), "ada"))
    assert len(slept) == 3  # one for planning, two steps of five
    assert 1.0 < sum(slept) <= 2.0


def test_a_broker_that_does_not_answer_puts_a_job_off(name, monkeypatch):
    job = job_service.start(JobSpec("remove", queue(name)), "ada")

    def silent(*_args):
        raise StoreUnavailable("no node is running")

    with monkeypatch.context() as patch:
        patch.setattr(type(gateway()), "step", silent)
        assert worker.run_slice(str(job.id)) == State.QUEUED
    job.refresh_from_db()
    assert "no node is running" in job.note
    assert finish(job).done == 10


WRONG = [
    (JobSpec("melt", queue("a")), RequestRefused, "action 'melt' must be one of"),
    (JobSpec("move", queue("a")), RequestRefused, "enter a target"),
    (JobSpec("move", queue("a"), queue("a")), RequestRefused, "the messages are already in"),
    (JobSpec("copy", queue("a"), queue("b.>")), RequestRefused, "is a pattern"),
    (JobSpec("retry", queue("a")), RequestRefused, "Enter a reason"),
    (JobSpec("edit", queue("a"), reason="r", edit=MessageEdit()), RequestRefused, "enter at least one change"),
    (JobSpec("edit", queue("a"), edit=MessageEdit({"n": "1"})), RequestRefused, "Enter a reason"),
    (JobSpec("edit", queue("a"), queue("b.>"), reason="r", edit=MessageEdit()), RequestRefused, "b.> is a pattern"),
    (JobSpec("edit", queue("a"), reason="r", edit=MessageEdit({"expires": "1"})), RequestRefused, "is not a property"),
    (JobSpec("remove", queue("a"), rate=-1), RequestRefused, "rate must be a whole number"),
    (JobSpec("remove", queue("a"), selector="a ="), SelectorSyntaxError, "position"),
    (JobSpec("remove", queue("a"), seqs=tuple(range(5_001))), RequestRefused, "Use a selector"),
]


@pytest.mark.parametrize(("wish", "error", "sentence"), WRONG, ids=[each[2] for each in WRONG])
def test_what_makes_no_sense_is_refused_with_a_reason(wish, error, sentence):
    with pytest.raises(error, match=sentence):
        wish.check()


def test_old_jobs_are_forgotten_with_their_outcomes(name, monkeypatch):
    job = finish(job_service.start(JobSpec("remove", queue(name)), "ada"))
    assert job_service.purge_old() == 0
    monkeypatch.setattr(job_service, "RETENTION", job_service.timedelta(0))
    assert job_service.purge_old() == 1
    assert not JobOutcome.objects.filter(job_id=job.id).exists()


def test_a_list_of_jobs_leaves_out_what_they_change_of_messages():
    body = MessageEdit(body=b"x" * 1000).to_json()
    Job.objects.create(name="large", action="edit", queue="queue://a", asked_by="ada", edit=body)
    [one] = job_service.without_edits(Job.objects.all())
    assert one.get_deferred_fields() == {"edit"}
    assert one.change == MessageEdit(body=b"x" * 1000)  # read where it is asked for


def test_open_pages_count_what_came_back_now_and_then_when_something_came_and_not_for_ever(monkeypatch):
    looks, newest = [], [7]
    door = SimpleNamespace(last=lambda _queue: newest[0], browse=lambda *_: looks.append(1) or BrowsePage([], 0, None))
    monkeypatch.setattr(failed_again, "gateway", lambda: door)
    job = Job.objects.create(name="x", action="retry", queue="queue://ActiveMQ.DLQ", asked_by="ada")
    assert (failed_again.live_cells(job), len(looks)) == ({}, 0), "nothing was sent again yet"
    job.done = 2
    monkeypatch.setattr(failed_again, "INTERVAL_FACTOR", 0)
    for recount, number, done, expected in ((60, 7, 2, 1), (60, 8, 3, 1), (0, 8, 2, 2), (0, 8, 2, 2), (0, 8, 3, 3)):
        monkeypatch.setattr(failed_again, "MIN_INTERVAL", recount)
        newest[0], job.done = number, done
        assert failed_again.live_cells(job) == {"back": "", "has_back": False}
        assert len(looks) == expected
    job.finished, newest[0] = timezone.now() - failed_again.FOLLOW_PERIOD, 9
    assert (failed_again.live_cells(job), len(looks)) == ({"back": "", "has_back": False}, 3)


def test_what_came_back_is_said_to_be_so_far_until_all_did_or_its_time_is_over():
    job = Job(action="retry", queue="queue://ActiveMQ.DLQ", asked_by="ada", done=3)

    def back(count: int) -> str:
        return failed_again._cells(job, MatchCount(count))["back"]

    assert back(3) == "3 failed again so far", "more may be sent again yet"
    job.finished = timezone.now()
    assert (back(2), back(3)) == ("2 failed again so far", "3 failed again")
    job.finished -= failed_again.FOLLOW_PERIOD * 2
    assert back(2) == "2 failed again"
