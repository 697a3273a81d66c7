"""Test that the log reports what happens often once a minute, with how often it happened."""

from brokerapp.connections.log_throttle import MAX_REMEMBERED, REPORT_INTERVAL_SECONDS, LogThrottle


def test_what_happens_often_is_reported_once_a_minute_with_its_count():
    throttle = LogThrottle()
    times = (0.0, 1.0, REPORT_INTERVAL_SECONDS - 1, REPORT_INTERVAL_SECONDS, REPORT_INTERVAL_SECONDS * 2)
    assert [throttle.count_to_report("a", at) for at in times] == [1, 0, 0, 3, 1]
    assert throttle.count_to_report("b", 1.0) == 1


def test_keys_beyond_a_limit_are_reported_as_one_until_others_are_old():
    throttle = LogThrottle()
    assert [throttle.count_to_report(number, 0.0) for number in range(MAX_REMEMBERED)] == [1] * MAX_REMEMBERED
    assert [throttle.count_to_report(f"more {number}", 1.0) for number in range(3)] == [1, 0, 0]
    assert throttle.count_to_report("later", REPORT_INTERVAL_SECONDS) == 1
    assert len(throttle._at) <= MAX_REMEMBERED
