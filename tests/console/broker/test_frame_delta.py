"""Test which cells of a channel are sent to a tab again. Pure."""

import pytest

from console.broker.live.frame_delta import delta, merge_delta

CASES = [
    ("everything is new at first", {}, {"a": 1, "rows": {"x": {"n": "1"}}}, {"a": 1, "rows": {"x": {"n": "1"}}}),
    ("what is the same is left out", {"a": 1, "b": 2}, {"a": 1, "b": 3}, {"b": 3}),
    ("of rows only what differs", {"rows": {"x": {"n": 1, "m": 2}, "y": {"n": 1}}},
     {"rows": {"x": {"n": 1, "m": 3}, "y": {"n": 1}}}, {"rows": {"x": {"m": 3}}}),
    ("a row that is new comes whole", {"rows": {}}, {"rows": {"x": {"n": 1}}}, {"rows": {"x": {"n": 1}}}),
    ("nothing changed, nothing is sent", {"rows": {"x": {"n": 1}}}, {"rows": {"x": {"n": 1}}}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("before", "now", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_delta_holds_what_differs(before, now, expected):
    changed = delta(before, now)
    assert changed == expected
    assert delta(merge_delta(before, changed), now) == {}


def test_what_is_not_told_again_is_still_known():
    assert merge_delta({"rows": {"x": {"n": 1, "spark": "s"}}}, {"rows": {"x": {"n": 2}}}) == {
        "rows": {"x": {"n": 2, "spark": "s"}}
    }
