"""What a run says of the levels that it read."""

from analytics.requests.request import TimeWindow
from analytics.tables.definitions import HOUR_US
from analytics.tables.reader import LevelsRead


def test_seconds_of_raw_events_begin_with_the_first_recorded_hour():
    levels = LevelsRead(first_us=10 * HOUR_US)
    assert levels.to_json(TimeWindow(8 * HOUR_US, 12 * HOUR_US))["raw_seconds"] == 7200
    levels.raw = {TimeWindow(0, 3 * HOUR_US), TimeWindow(9 * HOUR_US, 11 * HOUR_US)}
    assert levels.to_json(TimeWindow(0, 12 * HOUR_US))["raw_seconds"] == 3600
