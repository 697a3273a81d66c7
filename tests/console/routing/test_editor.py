"""Test the editor of definitions: cards, forms, warnings, saving to a draft, applying; policies."""

import itertools
from dataclasses import fields

import pytest
from django.urls import reverse

from brokerapp.admin import routing as routing_admin
from brokerapp.model.definitions import (
    DeadLetterStrategy,
    Definitions,
    PolicyEntry,
    RecoveryPolicy,
    RedeliveryPolicy,
    RedeliverySettings,
    VirtualTopic,
)
from brokerapp.model.destination import Destination
from console.audit.models import AuditEntry
from console.broker.gateway import gateway
from console.routing.definitions import publishing
from console.routing.drafts.models import Draft
from console.routing.editor.policy_options import NESTED, options_of

Q, T = Destination.queue, Destination.topic
LEGS = {
    "target_kind": ["queue", "queue"],
    "target_name": ["split.eu", "split.rest"],
    "target_selector": ["region = 'eu'", ""],
}


@pytest.fixture
def defined(console):
    """The definitions as a new broker has them, whatever other tests did."""
    current = gateway().definitions()
    gateway().define(Definitions(current.version, Definitions().virtual_destinations), "test", "start over")
    return console


def define(client, name: str, do: str = "apply", **changes):
    data = {"name": name, "forward_only": "on", "copy_message": "on", "do": do, **LEGS, **changes}
    return client.post(reverse("new-definition", kwargs={"kind": "compositeQueue"}), data)


def new(client, kind: str, **data):
    return client.post(reverse("new-definition", kwargs={"kind": kind}), {"do": "apply", **data})


def defined_ids() -> list[str]:
    return [each.id for each in gateway().definitions().virtual_destinations]


def test_the_cards_lead_to_the_four_kinds(browser_of, db):
    text = browser_of("support").get(reverse("choose-definition")).content.decode()
    for kind in ("virtualTopic", "compositeQueue", "compositeTopic", "mirroredQueue"):
        assert reverse("new-definition", kwargs={"kind": kind}) in text


def test_what_is_applied_works_at_once_and_is_recorded(admin, defined, wait_for_mirror):
    response = define(admin, "split", comment="by region")
    assert response["Location"].startswith(reverse("routing") + "?fresh=compositeQueue%3Asplit")
    defined.follows(gateway().definitions().version)
    defined.send("/queue/split", "a", region="eu")
    defined.send("/queue/split", "b", region="us")
    wait_for_mirror("queue://split.eu", 1)
    wait_for_mirror("queue://split.rest", 2)
    entry = AuditEntry.objects.get(action="apply routing")
    assert (entry.object, entry.outcome) == ("compositeQueue:split", "done")
    [after] = entry.after
    assert after["virtualDestinations"][0]["legs"][0] == {
        "destination": "queue://split.eu",
        "selector": "region = 'eu'",
    }
    assert gateway().history(1)[0]["comment"] == "by region"
    assert not Draft.objects.exists(), "a draft is kept only for a conflict"


def test_a_change_that_is_applied_is_checked_once_and_leaves_one_audit_entry(admin, defined, monkeypatch):
    checked, permitted = [], []
    check, permission = routing_admin.check_definitions, publishing.require_apply_permission
    monkeypatch.setattr("console.broker.gateway.check_definitions", lambda *args: checked.append(args))
    monkeypatch.setattr(routing_admin, "check_definitions", lambda *args: (checked.append(args), check(*args)))
    monkeypatch.setattr(
        publishing, "require_apply_permission", lambda *args: (permitted.append(args), permission(*args))
    )
    define(admin, "split")
    assert (len(checked), len(permitted)) == (1, 1)
    assert [each.action for each in AuditEntry.objects.exclude(action="sign in")] == ["apply routing"]


def test_every_option_of_a_virtual_topic_is_saved(admin, defined):
    options = ("selector_aware", "local", "concurrent_send", "transacted_send", "drop_on_resource_limit")
    new(admin, "virtualTopic", name="Events.>", prefix="App.*.", postfix=".q", **dict.fromkeys(options, "on"))
    saved = gateway().definitions().virtual_destinations[-1]
    assert saved == VirtualTopic("Events.>", "App.*.", ".q", *itertools.repeat(True, 5), set_original_destination=False)


def test_a_form_starts_with_the_defaults_of_activemq(admin, defined):
    form = admin.get(reverse("new-definition", kwargs={"kind": "virtualTopic"})).context["form"]
    assert {field.name: default for field, _, default in form.switches} == {
        "selector_aware": False, "local": False, "concurrent_send": False, "transacted_send": False,
        "drop_on_resource_limit": False, "set_original_destination": True,
    }  # fmt: skip


def test_a_mirror_is_defined_and_deleted(admin, defined):
    new(admin, "mirroredQueue", prefix="Mirror.", copy_message="on")
    assert defined_ids()[-1] == "mirroredQueue"
    admin.post(reverse("delete-definition") + "?id=mirroredQueue", {"do": "apply"})
    assert "mirroredQueue" not in defined_ids()


def test_editing_replaces_the_definition_also_under_a_new_name(admin, defined):
    define(admin, "before")
    url = reverse("edit-definition") + "?id=compositeQueue:before"
    assert [row.name for row in admin.get(url).context["form"].targets] == ["split.eu", "split.rest"]
    admin.post(url, {"name": "after", "forward_only": "on", "copy_message": "on", "do": "apply", **LEGS})
    assert defined_ids()[1:] == ["compositeQueue:after"]


REFUSED = [
    ("no name", {"name": ""}, "This field is required"),
    ("no target", {"target_name": ["", ""], "target_selector": ["", ""]}, "Add a target"),
    ("target without a name", {"target_name": ["", "x"]}, "Enter a target name"),
    ("pattern as a target", {"target_name": ["a.>", "x"]}, "makes a pattern"),
    ("selector", {"target_selector": ["region == 1", ""]}, "region =<mark>= 1</mark>"),
    ("a loop", {"target_name": ["bad", "x"], "target_selector": ["", ""]}, "definitions form a loop"),
]


@pytest.mark.parametrize("do", ["apply", "draft"])
@pytest.mark.parametrize(("changes", "reason"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED])
def test_what_cannot_work_is_not_even_a_draft(changes, reason, do, admin, defined):
    before = gateway().definitions()
    response = define(admin, **({"name": "bad", "do": do} | changes))
    assert response.status_code == 400
    assert reason in response.content.decode().replace("&#x27;", "'")
    assert gateway().definitions() == before
    assert not Draft.objects.exists()


def test_a_name_that_is_taken_is_refused(admin, defined):
    define(admin, "taken")
    assert "already exists" in define(admin, "taken").content.decode()


def test_a_definition_that_is_gone_is_not_found(admin, defined):
    assert admin.get(reverse("edit-definition") + "?id=compositeQueue:never").status_code == 404
    assert admin.get(reverse("new-definition", kwargs={"kind": "nonsense"})).status_code == 404


def test_the_check_beside_the_form_shows_xml_difference_and_what_matches(admin, defined, wait_for_mirror):
    defined.send("/queue/Consumer.A.VirtualTopic.Seen", "x")
    wait_for_mirror("queue://Consumer.A.VirtualTopic.Seen", 1)
    url = reverse("check-definition", kwargs={"kind": "virtualTopic"})
    text = admin.post(url, {"name": "VirtualTopic.Seen", "prefix": "Consumer.*."}, headers={"HX-Request": "true"})
    assert "1 consumer queue matches" in text.content.decode()
    assert 'hx-swap-oob="true"' in text.content.decode()
    url = reverse("check-definition", kwargs={"kind": "compositeQueue"})
    legs = {**LEGS, "target_name": ["never.eu", "never.rest"]}
    text = admin.post(url, {"name": "orders", "forward_only": "on", **legs}).content.decode()
    assert "Ready to save" in text
    assert "does not exist" in text
    assert (
        "&lt;filteredDestination selector=&quot;region = &#x27;eu&#x27;&quot; queue=&quot;never.eu&quot;/&gt;" in text
    )
    assert "<html" not in text
    define(admin, "orders")
    text = admin.post(url + "?id=compositeQueue:orders", {"name": "orders", **LEGS}).content.decode()
    assert "Diff to the active version" in text
    assert "orders" not in "".join(defined_ids()[:1])


# -- policies


def test_a_form_has_every_option_of_every_record_those_without_words_too():
    for record in (PolicyEntry, RedeliveryPolicy, RedeliverySettings, *(record for _, record, _ in NESTED.values())):
        apart = {"destination", "options", "kind", "policies", *NESTED}
        shown = [option.field for option in options_of(record)]
        assert sorted(shown) == sorted(each.name for each in fields(record) if each.name not in apart)


def test_a_policy_with_its_strategies_is_saved_and_edited(admin, defined):
    data = {
        "for_kind": "queue", "name": "orders.>", "queue_prefetch": "10", "prioritized_messages": "true",
        "dead_letter": "individual", "dead_letter.queue_prefix": "Dead.", "dead_letter.process_expired": "false",
        "dead_letter.dead_letter_queue": "not.for.this.kind",
        "recovery": "fixedCount", "recovery.maximum_size": "5",
    }  # fmt: skip
    assert new(admin, "policyEntry", **data).status_code == 302
    [policy] = gateway().definitions().policies
    assert policy == PolicyEntry(
        Q("orders.>"),
        queue_prefetch=10,
        prioritized_messages=True,
        dead_letter=DeadLetterStrategy("individual", queue_prefix="Dead.", process_expired=False),
        recovery=RecoveryPolicy("fixedCount", maximum_size=5),
    )
    url = reverse("edit-definition") + "?id=policyEntry:queue://orders.>"
    form = admin.get(url).context["form"]
    assert form["dead_letter.queue_prefix"].value() == "Dead."
    assert form["topic_prefetch"].value() is None
    admin.post(url, {**data, "dead_letter": "", "do": "apply"})
    assert gateway().definitions().policies[0].dead_letter is None
    assert "orders." in admin.get(reverse("routing-policies")).content.decode()


def test_a_redelivery_policy_and_what_becomes_of_the_rest_are_saved(admin, defined):
    new(admin, "redeliveryPolicy", for_kind="queue", name="orders", maximum_redeliveries="-1", redelivery_delay="5")
    admin.post(reverse("edit-definition") + "?id=redelivery", {"fallback_to_dead_letter": "false", "do": "apply"})
    redelivery = gateway().definitions().redelivery
    assert redelivery.policies == (RedeliveryPolicy(Q("orders"), maximum_redeliveries=-1, redelivery_delay=5),)
    assert not redelivery.fallback_to_dead_letter


WRONG = [
    ({"name": ""}, "Enter a name or a pattern"),
    ({"name": "a", "queue_prefetch": "many"}, "whole number"),
    ({"name": "a", "message_group_map_factory_type": "bag"}, "the kinds are"),
    ({"name": "a::b::c"}, "there is one ::"),
    ({"name": "a", "record_one_in": "-1"}, "greater than or equal to 0"),
    ({"name": "a", "record_one_in": "1000001"}, "less than or equal to 1000000"),
    ({"name": "a", "record_one_in": "often"}, "whole number"),
]


@pytest.mark.parametrize(("changes", "reason"), WRONG)
def test_a_policy_that_cannot_be_is_refused_with_the_reason(changes, reason, admin, defined):
    response = new(admin, "policyEntry", for_kind="queue", **changes)
    assert response.status_code == 400
    assert reason in response.content.decode()


# -- the map


def test_the_page_shows_list_and_picture(browser_of, admin, defined):
    define(admin, "shown")
    text = browser_of("viewer").get(reverse("routing")).content.decode()
    assert '<svg class="graph' in text
    assert "split.eu" in text
    assert "queue shown forwards to queue split.eu where region" in text, "it can be read without seeing it"
    table = browser_of("viewer", name="other").get(reverse("routing") + "?view=table").content.decode()
    assert "split.<wbr>eu" in table
    assert reverse("edit-definition") not in text + table


def test_the_map_shows_only_what_one_may_see(browser_of, admin, defined, wait_for_mirror):
    defined.send("/queue/Consumer.A.VirtualTopic.Secret", "x")
    wait_for_mirror("queue://Consumer.A.VirtualTopic.Secret", 1)
    assert "VirtualTopic.Secret" in browser_of("viewer").get(reverse("routing")).content.decode()
    scoped = browser_of("viewer", "mine.>", name="scoped")
    assert "VirtualTopic.Secret" not in scoped.get(reverse("routing")).content.decode()
    assert "VirtualTopic.Secret" not in scoped.get(reverse("routing-findings")).content.decode()


def test_findings_lead_to_the_next_step(admin, defined):
    define(admin, "useless")
    text = admin.get(reverse("routing-findings")).content.decode()
    assert "useless → split." in text
    assert reverse("edit-definition") + "?id=compositeQueue%3Auseless" in text
