"""Test import and export of an ActiveMQ configuration."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from brokerapp.config import import_definitions
from brokerapp.model.definitions import Definitions
from console.audit.models import AuditEntry
from console.broker.gateway import gateway
from console.routing.drafts.models import Draft

XML = """<broker xmlns="http://activemq.apache.org/schema/core" brokerName="old" persistent="true">
  <destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>
    <compositeQueue name="old.in"><forwardTo>
      <queue physicalName="old.a"/><topic physicalName="old.b"/>
    </forwardTo></compositeQueue>
  </virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>
  <persistenceAdapter><kahaDB directory="data"/></persistenceAdapter>
</broker>"""


@pytest.fixture
def defined(console):
    current = gateway().definitions()
    gateway().define(Definitions(current.version, Definitions().virtual_destinations), "test", "start over")
    return console


def ids() -> list[str]:
    return [each.id for each in gateway().definitions().virtual_destinations]


def test_a_preview_reports_and_changes_nothing(admin, defined):
    before = gateway().definitions().version
    response = admin.post(reverse("routing-import"), {"text": XML, "mode": "merge"})
    assert [(change.what, change.id) for change, _ in response.context["changes"]] == [("new", "compositeQueue:old.in")]
    text = response.content.decode()
    assert "persistenceAdapter" in text
    assert "ignored" in text
    assert gateway().definitions().version == before


def test_an_uploaded_file_is_read_too(admin, defined):
    file = SimpleUploadedFile("activemq.xml", XML.encode())
    response = admin.post(reverse("routing-import"), {"file": file, "mode": "replace"})
    changes = [(change.what, change.id) for change, _ in response.context["changes"]]
    assert ("removed", "virtualTopic:VirtualTopic.>|Consumer.*.|") in changes


def test_a_preview_says_of_each_mode_what_happens_to_what_stands(admin, defined):
    adding = admin.post(reverse("routing-import"), {"text": XML, "mode": "merge"}).content.decode()
    assert "1 active definition unchanged: Virtual topic <code>VirtualTopic.&gt;</code>" in " ".join(adding.split())
    assert "replaces the built-in" not in adding
    replacing = admin.post(reverse("routing-import"), {"text": XML, "mode": "replace"}).content.decode()
    assert "replaces the built-in virtual topic VirtualTopic.&gt;" in replacing
    assert "Messages already in its targets stay there." in replacing
    for text in (adding, replacing):
        assert "Consumer.*.|" not in text
        assert "compositeQueue:" not in text


@pytest.mark.parametrize("mode", ["merge", "replace"])
def test_a_file_without_definitions_is_said_to_define_none(admin, defined, mode):
    text = admin.post(reverse("routing-import"), {"text": '<broker brokerName="old"/>', "mode": mode}).content.decode()
    assert "The file defines no routing." in text
    assert "All definitions of the file" not in text


def test_a_wrong_selector_is_told_with_its_line_and_marked(admin, defined):
    filtered = '<filteredDestination selector="region == 1" queue="old.eu"/>'
    response = admin.post(reverse("routing-import"), {"text": XML.replace('<queue physicalName="old.a"/>', filtered)})
    assert response.status_code == 400
    text = response.content.decode()
    assert "Line 4: filteredDestination: " in text
    assert "is wrong at position 9: " in text
    assert "region =<mark>= 1</mark>" in text


def kept(admin, mode: str) -> Draft:
    admin.post(reverse("routing-import"), {"text": XML, "mode": mode, "draft": "1"})
    return Draft.objects.get()


def test_it_is_kept_in_a_draft_and_in_force_when_that_is_applied(admin, defined):
    standing = ids()
    draft = kept(admin, "merge")
    assert ids() == standing
    admin.post(reverse("draft-step", kwargs={"draft_id": draft.pk, "what": "apply"}))
    assert ids() == [*standing, "compositeQueue:old.in"]
    assert set(AuditEntry.objects.values_list("action", "outcome")) == {("import", "done"), ("apply routing", "done")}


def test_replacing_leaves_only_what_the_file_has(admin, defined):
    draft = kept(admin, "replace")
    admin.post(reverse("draft-step", kwargs={"draft_id": draft.pk, "what": "apply"}))
    assert ids() == ["compositeQueue:old.in"]


@pytest.mark.parametrize("text", ["", "words", "<broker", "<other/>"])
def test_what_is_no_configuration_is_refused_with_the_reason(text, admin, defined):
    response = admin.post(reverse("routing-import"), {"text": text, "mode": "merge"})
    assert response.status_code == 400
    assert response.context["error"]


def test_the_export_is_read_back_as_the_same(admin, defined):
    response = admin.get(reverse("routing-export"))
    assert response["Content-Disposition"] == 'attachment; filename="activemq.xml"'
    found, _ = import_definitions(response.content)
    assert found.virtual_destinations == gateway().definitions().virtual_destinations
