"""Test that modules which share what takes seconds to start are run by one process."""

import pytest

from tests.xdist_scheduler import TOGETHER, group_of


def test_a_module_with_a_session_of_spark_is_in_a_group(request: pytest.FixtureRequest):
    groups = {group[0] for group in TOGETHER}
    apart = {
        item.nodeid.partition("::")[0]
        for item in request.session.items
        if "spark" in item.fixturenames and group_of(item.nodeid) not in groups
    }
    assert apart == set()
