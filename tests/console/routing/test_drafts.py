"""Test drafts of the routing: saved, approved, applied, in conflict; history, revert and undo."""

from dataclasses import replace

import pytest
from django.urls import reverse
from django.utils.html import escape

from brokerapp.model.definitions import (
    CompositeDestination,
    DeadLetterStrategy,
    Definitions,
    ForwardTarget,
    MirroredQueue,
    PolicyEntry,
    RedeliveryPolicy,
    RedeliverySettings,
    VirtualTopic,
)
from brokerapp.model.destination import Destination
from console.access.models import Assignment
from console.audit.models import AuditEntry
from console.broker.gateway import gateway
from console.routing.definitions.changes import (
    DefinitionChange,
    apply_changes,
    collect_definitions,
    definition_from_json,
    definition_to_json,
    definitions_by_id,
    diff_definitions,
    find_conflicts,
    merge_change,
    resolve_conflict,
)
from console.routing.definitions.definition_values import non_default_values
from console.routing.drafts import draft_service
from console.routing.drafts.models import Draft

Q = Destination.queue


def composite(name: str, *targets: str) -> CompositeDestination:
    return CompositeDestination(Q(name), tuple(ForwardTarget(Q(each)) for each in targets))


A, A2, B = composite("a", "x"), composite("a", "x", "y"), composite("b", "x")
POLICY, POLICY2 = PolicyEntry(Q("a.>"), queue_prefetch=1), PolicyEntry(Q("a.>"), queue_prefetch=2)


def having(*items) -> Definitions:
    return collect_definitions(items, 7)


def test_what_is_said_leaves_out_all_defaults_those_of_its_parts_too():
    policy = PolicyEntry(Q("a.>"), dead_letter=DeadLetterStrategy("individual", queue_prefix="DLQ."), queue_prefetch=7)
    assert non_default_values(policy) == {
        "queuePrefetch": "7",
        "deadLetter.kind": "individual",
        "deadLetter.queuePrefix": "DLQ.",
    }
    assert non_default_values(PolicyEntry(Q("a"), dead_letter=DeadLetterStrategy())) == {"deadLetter.kind": "shared"}
    assert non_default_values(composite("a", "x")) == {"forwardTo queue://x": "all messages"}


# -- changes, as values

ITEMS = [A, VirtualTopic("V.>"), POLICY, RedeliveryPolicy(Q("a"), 3), RedeliverySettings(fallback_to_dead_letter=False)]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: type(item).__name__)
def test_an_item_survives_its_way_through_the_database(item):
    assert definition_from_json(definition_to_json(item)) == item
    assert (
        definitions_by_id(collect_definitions([item]))[next(iter(definitions_by_id(collect_definitions([item]))))]
        is not None
    )


def test_changes_of_different_definitions_do_not_disturb_each_other():
    theirs = having(A, B, POLICY2)
    assert apply_changes(theirs, [DefinitionChange(A, A2)]) == having(A2, B, POLICY2)


def test_what_is_changed_keeps_its_place_also_under_a_new_name():
    c = composite("c", "x")
    assert apply_changes(having(A, B), [DefinitionChange(A, c)]).virtual_destinations == (c, B)


CLASHES = [
    ("changed by somebody else", having(A2), DefinitionChange(A, composite("a", "z")), A2, False),
    ("deleted by somebody else", having(), DefinitionChange(A, A2), None, False),
    ("name taken", having(A2), DefinitionChange(None, A), A2, True),
    ("new name taken", having(A, B), DefinitionChange(A, composite("b", "q")), B, True),
    ("policy", having(POLICY2), DefinitionChange(POLICY, None), POLICY2, False),
]


@pytest.mark.parametrize(("current", "change", "theirs", "taken"), [each[1:] for each in CLASHES])
def test_what_clashes_is_told_and_left_out(current, change, theirs, taken):
    [clash] = find_conflicts(current, [change])
    assert (clash.theirs, clash.is_name_taken) == (theirs, taken)
    assert apply_changes(current, [change]) == current


@pytest.mark.parametrize(("current", "change", "theirs", "taken"), [each[1:] for each in CLASHES])
def test_a_decided_clash_is_none_any_more(current, change, theirs, taken):
    [clash] = find_conflicts(current, [change])
    kept = resolve_conflict([change], clash, keep=True)
    assert find_conflicts(current, kept) == []
    result = definitions_by_id(apply_changes(current, kept))
    assert change.after is None or change.after in result.values()
    assert resolve_conflict([change], clash, keep=False) == []


def test_what_somebody_did_already_is_no_clash():
    assert find_conflicts(having(A2), [DefinitionChange(A, A2)]) == []
    assert find_conflicts(having(), [DefinitionChange(A, None)]) == []


def test_a_draft_changes_one_definition_once():
    assert merge_change([DefinitionChange(None, A)], DefinitionChange(A, A2)) == [DefinitionChange(None, A2)]
    assert merge_change([DefinitionChange(A, A2)], DefinitionChange(A2, A)) == []
    assert merge_change([DefinitionChange(A, None)], DefinitionChange(None, A2)) == [DefinitionChange(A, A2)]
    assert merge_change([DefinitionChange(None, B)], DefinitionChange(A, A2)) == [
        DefinitionChange(None, B),
        DefinitionChange(A, A2),
    ]


def test_between_is_what_applied_undoes():
    old, new = having(A, POLICY), having(A2, B)
    assert apply_changes(old, diff_definitions(old, new)) == new
    assert apply_changes(new, diff_definitions(new, old)).policies == (POLICY,)


# -- drafts, on a broker


@pytest.fixture
def defined(console):
    current = gateway().definitions()
    gateway().define(Definitions(current.version, ()), "test", "start over")
    return console


def keep(client, name: str, target: str = "x", **more):
    data = {"name": name, "forward_only": "on", "copy_message": "on", "do": "draft"}
    legs = {"target_kind": ["queue"], "target_name": [target], "target_selector": [""]}
    client.post(reverse("new-definition", kwargs={"kind": "compositeQueue"}), {**data, **legs, **more})
    return Draft.objects.latest("id")


def step(client, draft: Draft, what: str, **data):
    response = client.post(reverse("draft-step", kwargs={"draft_id": draft.pk, "what": what}), data, follow=True)
    draft.refresh_from_db()
    return response.content.decode()


def in_force() -> list[str]:
    return [each.id for each in gateway().definitions().virtual_destinations]


def test_a_draft_is_kept_and_not_in_force_until_it_is_applied(admin, defined):
    draft = keep(admin, "later", comment="for the fair")
    assert (draft.name, draft.author, in_force()) == ("for the fair", "admin", [])
    page = admin.get(reverse("draft", kwargs={"draft_id": draft.pk})).content.decode()
    assert "later" in page
    assert "line-added" in page
    assert "Every target has a selector" not in page
    step(admin, draft, "apply")
    assert in_force() == ["compositeQueue:later"]
    assert draft.applied_version == gateway().definitions().version
    assert gateway().history(1)[0]["comment"] == "for the fair"


def test_a_draft_gives_the_advice_that_the_form_gave(admin, defined):
    draft = keep(admin, "choosy", target_selector=["a = 1"])
    page = admin.get(reverse("draft", kwargs={"draft_id": draft.pk})).content.decode()
    assert "Unmatched messages are discarded" in page


def test_several_changes_are_one_draft_and_one_version(admin, defined):
    draft, version = keep(admin, "one"), gateway().definitions().version
    keep(admin, "two", target="one", draft=str(draft.pk))
    step(admin, draft, "apply")
    assert in_force() == ["compositeQueue:one", "compositeQueue:two"]
    assert gateway().definitions().version == version + 1


def test_a_loop_across_the_changes_of_a_draft_is_refused(admin, defined):
    draft = keep(admin, "one", target="two")
    keep(admin, "two", target="one", draft=str(draft.pk))
    draft.refresh_from_db()
    assert [each.id for each in draft.read_changes()] == ["compositeQueue:one"]


def test_support_asks_and_an_admin_applies(browser_of, admin, defined):
    support = browser_of("support")
    draft = keep(support, "asked")
    step(support, draft, "ask", text="please")
    assert draft.state == Draft.State.ASKED
    assert support.post(reverse("draft-step", kwargs={"draft_id": draft.pk, "what": "apply"})).status_code == 403
    assert in_force() == []
    step(admin, draft, "return", text="what for?")
    assert draft.state == Draft.State.OPEN
    text = step(support, draft, "remark", text="for the fair")
    assert "what for?" in text
    assert "for the fair" in text
    step(support, draft, "ask")
    assert "Awaiting approval" in admin.get(reverse("routing-changes")).content.decode()
    step(admin, draft, "apply")
    assert (in_force(), draft.decided_by) == (["compositeQueue:asked"], "admin")
    assert AuditEntry.objects.filter(outcome="denied", who="support").exists()


def test_support_cannot_apply_from_the_editor(browser_of, defined):
    response = browser_of("support").post(
        reverse("new-definition", kwargs={"kind": "compositeQueue"}),
        {"name": "n", "do": "apply", "target_kind": ["queue"], "target_name": ["x"], "target_selector": [""]},
    )
    assert response.status_code == 403
    assert in_force() == []


def test_a_right_to_apply_elsewhere_is_none_here(browser_of, defined, admin):
    operator = browser_of("operator", "mine.>")
    Assignment.objects.filter(user__username="operator").update(extras=["route"])
    draft = keep(admin, "mine.in", target="mine.x")
    keep(admin, "theirs.in", target="theirs.x", draft=str(draft.pk))
    assert operator.post(reverse("draft-step", kwargs={"draft_id": draft.pk, "what": "apply"})).status_code == 403
    reaching = keep(admin, "mine.in", target="theirs.x")  # names what they may not know of
    assert operator.post(reverse("draft-step", kwargs={"draft_id": reaching.pk, "what": "apply"})).status_code == 404
    draft = keep(admin, "mine.in", target="mine.x")
    step(operator, draft, "apply")
    assert in_force() == ["compositeQueue:mine.in"]


@pytest.mark.parametrize(
    ("change", "status", "named"),
    [
        (VirtualTopic("mine.t", prefix="theirs."), 404, ""),  # names what they may not know of
        (VirtualTopic("mine.>"), 403, "queue://Consumer.*.mine.>"),
        (VirtualTopic(">", prefix="mine."), 403, "topic://>"),
        (MirroredQueue("mine."), 403, "queue://>"),
        (PolicyEntry(Q("mine.>"), DeadLetterStrategy("individual", queue_prefix="d.")), 403, "queue://d.mine.>"),
        (CompositeDestination(Q("mine.in"), (ForwardTarget(Q("theirs::mine.spy")),)), 403, "queue://theirs::mine.spy"),
        (VirtualTopic("mine.t", prefix="Of.*."), 302, ""),
    ],
)
def test_a_right_to_apply_ends_where_a_prefix_would_lead_out_of_it(browser_of, defined, change, status, named):
    operator = browser_of("operator", "mine.>", "Of.*.mine.>")
    Assignment.objects.filter(user__username="operator").update(extras=["route"])
    before = gateway().definitions().version
    draft = draft_service.create_draft("operator", "Out of it", [DefinitionChange(None, change)], before)
    response = operator.post(reverse("draft-step", kwargs={"draft_id": draft.pk, "what": "apply"}))
    assert response.status_code == status
    assert escape(named) in response.content.decode()
    assert (gateway().definitions().version > before) is (status == 302)


def test_what_is_recorded_needs_a_right_of_its_own_and_no_other(browser_of, defined, admin):
    policy, operator = PolicyEntry(Q("orders.>"), queue_prefetch=5), browser_of("operator")

    def applied(before, after) -> int:
        draft = draft_service.create_draft("operator", "Recording", [DefinitionChange(before, after)], 1)
        return operator.post(reverse("draft-step", kwargs={"draft_id": draft.pk, "what": "apply"})).status_code

    draft_service.apply(draft_service.create_draft("admin", "Policy", [DefinitionChange(None, policy)], 1), "admin")
    sampled = replace(policy, record_one_in=10)
    for extras, wanted, status in (
        (["route"], sampled, 403),
        (["record"], replace(sampled, queue_prefetch=6), 403),
        (["record"], sampled, 302),
    ):
        Assignment.objects.filter(user__username="operator").update(extras=extras)
        assert applied(policy, wanted) == status
    assert gateway().definitions().policies == (sampled,)


def test_a_conflict_keeps_the_draft_and_shows_three_sides(admin, defined):
    draft = keep(admin, "both", target="mine")
    step(admin, keep(admin, "both", target="theirs"), "apply")
    text = step(admin, draft, "apply")
    assert draft.state == Draft.State.OPEN
    assert "Name conflict: another user defined" in text
    assert "queue://mine" in text
    assert "queue://theirs" in text
    step(admin, draft, "resolve", id="compositeQueue:both", keep="mine")
    step(admin, draft, "apply")
    [definition] = gateway().definitions().virtual_destinations
    assert definition.legs == (ForwardTarget(Q("mine")),)


def test_a_draft_in_conflict_shows_how_it_differs_from_the_active_version(admin, defined):
    draft = keep(admin, "both", target="mine")
    step(admin, keep(admin, "both", target="theirs"), "apply")
    text = step(admin, draft, "apply")
    difference = text.partition("activemq.xml diff")[2].partition("</figure>")[0]
    assert "theirs" in difference
    assert "mine" in difference
    assert "o difference" not in text
    note = text.partition("Not applied: the same definitions were changed by another user")[0].rpartition("<div")[2]
    assert "#warn" in note
    assert "note-warning" in note


def test_a_draft_whose_changes_are_active_already_says_so(admin, defined):
    draft = keep(admin, "both")
    step(admin, keep(admin, "both"), "apply")
    text = admin.get(reverse("draft", args=[draft.pk])).content.decode()
    assert "No difference: the active version already contains these changes." in text


def test_a_change_by_somebody_else_since_the_form_was_opened_is_not_lost(admin, defined):
    step(admin, keep(admin, "mine"), "apply")
    opened = gateway().definitions().version
    url = reverse("edit-definition") + "?id=compositeQueue:mine"
    data = {"name": "mine", "forward_only": "on", "copy_message": "on", "do": "apply", "version": str(opened)}
    legs = {"target_kind": ["queue"], "target_selector": [""]}
    admin.post(url, {**data, **legs, "target_name": ["first"]})
    response = admin.post(url, {**data, **legs, "target_name": ["second"]}, follow=True)
    assert "another user changed" in response.content.decode()
    assert gateway().definitions().virtual_destinations[0].legs == (ForwardTarget(Q("first")),)


def test_two_who_decide_at_once_do_not_overwrite_each_other(admin, defined):
    draft = keep(admin, "raced")
    stale = Draft.objects.get(pk=draft.pk)
    step(admin, draft, "rename", name="better")
    from brokerapp.errors import DefinitionRefused
    from console.routing.drafts import draft_service

    with pytest.raises(DefinitionRefused, match="by another user"):
        draft_service.add_change(stale, "late", DefinitionChange(None, B))


def test_a_dropped_draft_is_closed(admin, defined):
    draft = keep(admin, "dropped")
    step(admin, draft, "drop")
    assert "changed or closed" in step(admin, draft, "apply")
    assert in_force() == []


# -- history


def test_a_version_tells_what_it_changed_and_is_reverted_to_with_one_click(admin, defined):
    step(admin, keep(admin, "first"), "apply")
    wanted = gateway().definitions().version
    step(admin, keep(admin, "second"), "apply")
    page = admin.get(reverse("routing-version", kwargs={"number": wanted})).content.decode()
    assert "first" in page
    assert "Revert to version" in page
    data = {"current": gateway().definitions().version}
    admin.post(reverse("revert-routing", kwargs={"number": wanted}), data)
    assert in_force() == ["compositeQueue:first"]
    assert AuditEntry.objects.filter(action="revert routing", outcome="done").exists()
    admin.post(reverse("revert-routing", kwargs={"number": wanted}), data)
    assert AuditEntry.objects.filter(action="revert routing", outcome="refused").exists()


def test_the_last_change_is_undone_once(admin, defined):
    applied = step(admin, keep(admin, "hasty"), "apply")
    version = str(gateway().definitions().version)
    assert reverse("undo-routing") in applied
    assert reverse("undo-routing") in admin.get(reverse("routing")).content.decode()
    admin.post(reverse("undo-routing"), {"version": version})
    assert in_force() == []
    response = admin.post(reverse("undo-routing"), {"version": version}, follow=True)
    assert "another change was applied since" in response.content.decode()


def test_an_old_change_is_not_undone(admin, defined, monkeypatch):
    from datetime import timedelta

    monkeypatch.setattr("console.routing.definitions.versions.UNDO_TIME", timedelta(seconds=-1))
    step(admin, keep(admin, "old"), "apply")
    assert reverse("undo-routing") not in admin.get(reverse("routing")).content.decode()
    admin.post(reverse("undo-routing"), {"version": str(gateway().definitions().version)})
    assert in_force() == ["compositeQueue:old"]


def test_a_version_that_never_was_is_not_found(admin, defined):
    assert admin.get(reverse("routing-version", kwargs={"number": 99_999})).status_code == 404
