"""Test that irreversible actions are confirmed, in a dialog or on a page."""

import re

import pytest
from django.template import Context, Template

from brokerapp.system.environment import PROJECT

TEMPLATES = PROJECT / "templates"
#: A form of one line whose button warns: pressed, it acts.
AT_ONCE = re.compile(
    r"""<form method="post" action="\{% [^%]*?url '([\w-]+)'[^>]*>\s*\{% csrf_token %\}(?:(?!</form>).)*?"""
    r"""button-danger"""
)
#: What may act at once: work is stopped and can be begun again, or the same page gives back what it took.
HARMLESS = {"cancel-run", "cancel-search", "cancel-trial", "change-user", "control-job", "role-revoke"}


def test_no_button_that_warns_acts_at_once_where_nothing_gives_it_back():
    found = {name for path in TEMPLATES.rglob("*.html") for name in AT_ONCE.findall(path.read_text())}
    assert found <= HARMLESS
    assert found >= {"cancel-run", "role-revoke"}, "the test sees such forms"


QUESTION = (
    '{% confirm label="Delete" url="/x" about=name name="action" value="delete" typed=typed %}'
    "Gone for good.{% endconfirm %}"
)


@pytest.mark.parametrize("typed", ["", "a<b"])
def test_a_question_names_what_it_is_about_and_may_want_it_typed(typed):
    said = Template(QUESTION).render(Context({"name": "a<b", "typed": typed, "csrf_token": "t"}))
    assert "<h2" in said
    assert "Delete a&lt;b?" in said
    assert "Gone for good." in said
    assert '<input type="hidden" name="action" value="delete">' in said
    assert ('data-must-equal="a&lt;b"' in said) == bool(typed)
    opener, question = re.search(r'popovertarget="([^"]+)"', said)[1], re.search(r'<div popover id="([^"]+)"', said)[1]
    assert opener == question
