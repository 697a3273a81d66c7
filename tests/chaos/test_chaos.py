"""Test that three brokers of two nodes each, joined by bridges, keep every promise under faults.

The plan is that of one seed; `python -m tests.chaos --seed N --seconds S` runs others.
"""

import pytest

from tests.chaos.plan import FaultKind
from tests.chaos.run import run

pytestmark = pytest.mark.slow

#: In these seconds each kind of fault comes once at least.
SEED, SECONDS = 20, 10.0
SHARDED_SEED = 1


def test_whatever_breaks_what_was_confirmed_comes_once_or_flagged_in_order_and_nothing_is_left(tmp_path):
    outcome = run(SEED, SECONDS, tmp_path)
    assert {each.kind for each in outcome.faults} == set(FaultKind)
    assert outcome.ledger.numbers()["confirmed"] > 300, "there was something to lose"
    assert outcome.is_fine, str(outcome)


@pytest.mark.long
def test_so_they_do_when_each_has_two_shards(tmp_path):
    kinds = [FaultKind.KILL, FaultKind.PAUSE_PAST_TIMEOUT, FaultKind.KILL_STORE]
    outcome = run(SHARDED_SEED, SECONDS, tmp_path, kinds, ["shop", "checked", "incoming", "news"], shards=2)
    assert {each.kind for each in outcome.faults} == set(kinds)
    assert outcome.ledger.numbers()["confirmed"] > 100, "there was something to lose"
    assert outcome.is_fine, str(outcome)
