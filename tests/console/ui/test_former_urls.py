"""Tests that paths of former versions lead to the present ones, with query and method."""

import re

import pytest
from django.urls import resolve

from console.ui.former_urls import FORMER

VALUES = {"name": "a.b", "id": "ID:x-1", "log": "c:n", "int": "7"}


def _filled(path: str) -> str:
    return "/" + re.sub(r"<(\w+):(\w+)>", lambda found: VALUES.get(found[2], VALUES.get(found[1], "")), path)


@pytest.mark.parametrize(("former", "present"), FORMER.items())
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_former_path_leads_to_the_present_one(admin, former, present, method):
    response = getattr(admin, method)(_filled(former) + "?q=x%20y")
    path, _, query = response["Location"].partition("?")
    found = resolve(path)
    assert (response.status_code, found.url_name, query) == (308, present, "q=x%20y")
    assert {str(value) for value in found.kwargs.values()} <= set(VALUES.values())
