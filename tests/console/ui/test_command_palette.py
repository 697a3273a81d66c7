"""Test the command palette, the go-to shortcuts, and the user's preferences."""

import pytest
from django.urls import resolve

from console.ui.navigation.command_palette import COMMANDS, SHOWN, PaletteCommand, allowed_commands, search_commands
from console.ui.preferences.models import UserSetting
from tests.waiting import wait_until


def test_every_command_leads_to_a_page():
    for command in COMMANDS:
        assert resolve(command.url).url_name == command.page


def test_no_two_commands_have_the_same_keys():
    keys = [command.keys for command in COMMANDS if command.keys]
    assert len(keys) == len(set(keys))
    assert all(len(each.split()) == 2 and each.startswith("g ") for each in keys)


@pytest.mark.parametrize(
    ("text", "first"), [("queues", "Queues"), ("new comp", "New composite queue"), ("topic v", "New virtual topic")]
)
def test_words_find_a_command_in_any_order(text, first):
    assert search_commands(text, list(COMMANDS))[0].label == first


def test_what_begins_with_the_text_comes_first():
    commands = [PaletteCommand("Old list", "queues", "queue"), PaletteCommand("List", "queues", "queue")]
    assert [each.label for each in search_commands("list", commands)] == ["List", "Old list"]


def test_nobody_is_offered_what_they_have_no_right_to():
    labels = {command.label for command in allowed_commands({"see": True})}
    assert "Queues" in labels
    assert "New queue" not in labels
    assert len(search_commands("", list(COMMANDS))) == SHOWN


def test_the_palette_finds_pages_and_destinations(console, browser_of):
    console.send("/queue/palette.orders", "one")
    viewer = browser_of("viewer")
    wait_until(
        lambda: "palette.orders" in viewer.get("/palette?q=orders+pal").content.decode(), "the queue in the palette"
    )
    said = viewer.get("/palette?q=queue").content.decode()
    assert "Queues" in said
    assert "New queue" not in said
    assert "New queue" in browser_of("admin").get("/palette?q=new+queue").content.decode()
    assert "Search everywhere" in viewer.get("/palette?q=no-such-thing").content.decode()


def test_somebody_with_a_scope_finds_no_destination_outside_of_it(console, browser_of, django_user_model):
    from console.access.models import Assignment

    console.send("/queue/palette.inside", "one")
    console.send("/queue/palette.outside", "one")
    admin, viewer = browser_of("admin"), browser_of("")
    Assignment.objects.create(
        user=django_user_model.objects.get(username="nobody"), role="viewer", scopes=["queue://palette.inside"]
    )
    wait_until(lambda: "palette.outside" in admin.get("/palette?q=palette.").content.decode(), "both queues")
    said = viewer.get("/palette?q=palette.").content.decode()
    assert "palette.inside" in said
    assert "palette.outside" not in said


def test_single_keys_are_turned_off_and_on(console, browser_of):
    viewer = browser_of("viewer")
    assert 'data-keys="off"' not in viewer.get("/").content.decode()
    assert viewer.post("/keys", {"keys": "off", "back": "/queues/"}).url == "/queues/"
    assert UserSetting.objects.get().single_keys is False
    assert 'data-keys="off"' in viewer.get("/").content.decode()
    assert viewer.post("/keys", {"keys": "perhaps"}).status_code == 400


@pytest.mark.parametrize(
    ("theme", "link"), [("auto", "(prefers-contrast: more)"), ("contrast", "contrast.css"), ("light", None)]
)
def test_high_contrast_is_for_whoever_asks_for_it(console, browser_of, theme, link):
    viewer = browser_of("viewer")
    viewer.post("/theme", {"theme": theme})
    said = viewer.get("/").content.decode()
    assert ("contrast" in said.split("</head>")[0]) is (link is not None)
    assert link is None or link in said
