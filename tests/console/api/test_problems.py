"""Test that wrong requests get a problem document that names the input and the rule."""

import json
import pathlib
import re

import pytest
from django.test import Client

from console.api.composition import api
from tests.console.accounts.test_api_tokens import caller, token_of
from tests.console.api.test_api import API, call, plenty, program  # noqa: F401

PROBLEM = "application/problem+json"
BEYOND_64_BITS = 2**64


def refused(response, status):
    assert (response.status_code, response["Content-Type"]) == (status, PROBLEM), response.content
    return response.json()


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/nothing", "/api/v1/jobs/not-an-id"])
def test_an_unknown_path_is_answered_with_a_problem_document(db, path):
    found = refused(Client().get(path), 404)
    assert (found["detail"], found["instance"]) == ("Resource not found.", path)


def test_a_method_that_a_path_does_not_take_is_answered_with_those_it_takes(db):
    response = Client().patch(f"{API}/destinations")
    assert refused(response, 405)["detail"] == "Method PATCH is not allowed here. Allowed: GET, POST."
    assert response["Allow"] == "GET, POST"


def test_a_change_with_neither_token_nor_session_is_told_to_send_a_token(db):
    response = Client(enforce_csrf_checks=True).post(f"{API}/checks", headers={"Authorization": "Basic YWRtaW46cHc="})
    assert refused(response, 401)["detail"] == "Send a valid token: Authorization: Bearer sluice_..."


@pytest.mark.parametrize("body", [[], "text", 7, [{"kind": "queue"}]])
def test_a_body_that_is_not_an_object_is_refused_as_such(program, body):  # noqa: F811
    response = program.post(f"{API}/destinations", json.dumps(body), content_type="application/json")
    assert refused(response, 422)["errors"] == [{"input": "body", "rule": "must be a JSON object"}]


def test_an_unknown_field_is_refused_by_its_name(program):  # noqa: F811
    wanted = {"kind": "hourly", "parameters": {}, "from": "2026-01-01", "to": "2026-01-02"}
    found = call(program, "post", "/analyses/runs", wanted, 422)
    assert found["errors"] == [
        {"input": "from", "rule": "unknown field"},
        {"input": "to", "rule": "unknown field"},
    ]
    message = {"action": "edit", "queue": "q", "edit": {"prioritty": 3}}
    [error] = call(program, "post", "/jobs", message, 422)["errors"]
    assert error["input"] == "edit.prioritty"


def test_every_body_that_the_api_takes_refuses_unknown_fields():
    schema = api.get_openapi_schema()
    named = schema["components"]["schemas"]

    def parts(node):
        """The objects that a schema is made of, those that it refers to included."""
        if isinstance(node, list):
            return [found for each in node for found in parts(each)]
        if not isinstance(node, dict):
            return []
        if "$ref" in node:
            return parts(named[node["$ref"].rpartition("/")[2]])
        inner = [found for each in node.values() for found in parts(each)]
        return [node, *inner] if isinstance(node.get("properties"), dict) and node.get("type") == "object" else inner

    bodies = [
        (id["operationId"], part.get("title"))
        for operations in schema["paths"].values() for id in operations.values() if "requestBody" in id
        for part in parts(id["requestBody"]) if part.get("additionalProperties") is not False
    ]  # fmt: skip
    assert bodies == []


def test_an_unknown_query_parameter_is_refused_by_its_name(program, console):  # noqa: F811
    [error] = call(program, "get", "/destinations?filtr=paused", status=422)["errors"]
    assert error["input"] == "query.filtr"
    assert error["rule"] == "unknown field"
    [error] = call(program, "get", "/me?since=1", status=422)["errors"]
    assert error["input"] == "query.since"


def test_a_permission_that_only_the_token_lacks_is_told_so(console, db):
    narrow = caller(token_of("admin", "see", scopes=("api.>",)))
    by_verb = refused(narrow.post(f"{API}/destinations/queue/api.x/purge"), 403)["detail"]
    assert by_verb == "This token does not include the permission remove (delete messages and purge queues)."
    by_scope = refused(narrow.get(f"{API}/destinations/queue/other"), 403)["detail"]
    assert by_scope == "This token includes the permission see only for api.>, not for queue://other."
    role = refused(caller(token_of("viewer", "see")).post(f"{API}/destinations/queue/api.x/purge"), 403)["detail"]
    assert "roles operator and admin" in role


def test_a_number_beyond_64_bits_is_refused_as_an_input(program, console, wait_for_mirror):  # noqa: F811
    console.send("/queue/api.big", "x")
    wait_for_mirror("api.big", 1)
    for path in (
        f"/queues/api.big/messages?after={BEYOND_64_BITS}",
        f"/queues/api.big/messages?newest=true&before={BEYOND_64_BITS}",
        f"/queues/api.big/messages/{BEYOND_64_BITS}",
        f"/routing?version={BEYOND_64_BITS}",
        f"/routing/drafts/{BEYOND_64_BITS}",
        f"/history?from=1&to={BEYOND_64_BITS}",
    ):
        response = program.get(API + path)
        assert response.status_code in (404, 422), (path, response.content)
        assert response["Content-Type"] == PROBLEM
    job = f"/routing/revert/{BEYOND_64_BITS}"
    assert program.post(API + job).status_code in (404, 422)
    message = {"destination": "/queue/api.big", "body": "x", "expires": BEYOND_64_BITS}
    assert call(program, "post", "/messages", message, 422)["errors"][0]["input"] == "expires"
    chosen = {"action": "remove", "queue": "api.big", "seqs": [BEYOND_64_BITS]}
    assert call(program, "post", "/jobs", chosen, 422)["errors"][0]["input"] == "seqs.0"
    routing = {"definitions": {}, "version": BEYOND_64_BITS}
    assert call(program, "put", "/routing", routing, 422)["errors"][0]["input"] == "version"


def test_the_description_tells_how_a_failed_request_is_answered_and_no_two_schemas_share_a_name():
    schema = api.get_openapi_schema()
    told = [each["responses"]["default"] for path in schema["paths"].values() for each in path.values()]
    assert all(PROBLEM in each["content"] for each in told)
    assert "#/components/schemas/Problem" in str(told)
    named: dict[str, set] = {}
    for module in pathlib.Path("console/api").glob("*.py"):
        for name in re.findall(r"^class (\w+)\((?:Schema|RequestBody|PageQuery)", module.read_text(), re.MULTILINE):
            named.setdefault(name, set()).add(module.name)
    assert {name: found for name, found in named.items() if len(found) > 1} == {}


def test_a_value_that_cannot_be_read_as_its_type_is_refused(program):  # noqa: F811
    for paused in ("maybe", 2, None, []):
        [error] = call(program, "put", "/destinations/queue/q/paused", {"paused": paused}, 422)["errors"]
        assert error["input"] == "paused"
