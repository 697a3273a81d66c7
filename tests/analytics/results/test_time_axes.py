"""Test ticks and labels of time axes in the reader's time zone."""

from datetime import UTC, datetime, timedelta

import pytest

from analytics.results import chart_images, charts, time_axes

START = datetime(2026, 11, 20, 13, 12, tzinfo=UTC)


def texts(seconds: float, zone: str = "UTC", start: datetime = START, most: int = time_axes.MOST) -> list[str]:
    return [text for _, text in time_axes.tick_marks(start, start + timedelta(seconds=seconds), zone, most)]


@pytest.mark.parametrize("most", [time_axes.MOST, time_axes.MOST_NARROW])
@pytest.mark.parametrize("seconds", [60, 180, 600, 901, 3600, 7200, 86_400, 7 * 86_400, 31 * 86_400])
def test_a_range_of_any_length_has_several_marks_and_not_too_many(seconds, most):
    assert 2 <= len(texts(seconds, most=most)) <= most + 1


def test_marks_stand_at_round_moments_of_the_clock_and_name_the_day_once():
    assert texts(180) == ["13:12:00\n20 Nov", "13:12:30", "13:13:00", "13:13:30", "13:14:00", "13:14:30", "13:15:00"]
    assert texts(3600, "Europe/Berlin")[:2] == ["14:20\n20 Nov", "14:30"]
    assert texts(3600, "Asia/Kolkata")[0] == "18:50\n20 Nov"
    assert texts(14 * 3600)[-1] == "03:00" or "\n21 Nov" in "".join(texts(14 * 3600))
    assert texts(4 * 86_400, "Europe/Berlin")[0] == "21 Nov\n2026"


def test_a_change_of_the_clock_gives_no_mark_twice_and_none_out_of_order():
    for day in (datetime(2026, 10, 24, 20, tzinfo=UTC), datetime(2026, 3, 28, 20, tzinfo=UTC)):
        moments = [moment for moment, _ in time_axes.tick_marks(day, day + timedelta(hours=12), "Europe/Berlin", 24)]
        assert moments == sorted(set(moments))
        assert len(moments) >= 10


def test_an_axis_says_which_clock_it_has():
    later = START + timedelta(hours=1)
    assert time_axes.zone_label(START, later, "Europe/Berlin") == "CET"
    assert time_axes.zone_label(START, later) == "UTC"
    assert time_axes.zone_label(START, later, "America/Sao_Paulo") == "America/Sao_Paulo", (
        "it has no letters of its own"
    )
    assert time_axes.zone_label(datetime(2026, 10, 24, 20, tzinfo=UTC), START, "Europe/Berlin") == "Europe/Berlin"


def test_a_pointer_reads_seconds_where_slots_are_shorter_than_a_minute():
    assert time_axes.hover_format(["2026-11-20T13:12:00Z", "2026-11-20T13:12:10Z"]) == "%-d %b, %H:%M:%S"
    assert time_axes.hover_format(["2026-11-20T13:12:00Z", "2026-11-20T13:13:00Z"]) == "%-d %b, %H:%M"
    figure = charts.lines(["2026-11-20T13:12:00Z", "2026-11-20T13:12:10Z"], {"a": [1, 2]}, "messages")
    assert "%H:%M:%S" in figure["data"][0]["hovertemplate"]


def drawn(figure: dict, zone: str, monkeypatch) -> list:
    """The axes of a chart of a mail, after it was drawn."""
    kept = []
    dress = chart_images._style_axes
    monkeypatch.setattr(
        chart_images, "_style_axes", lambda axes_, *rest, **more: (kept.append(axes_), dress(axes_, *rest, **more))
    )
    assert chart_images.png(figure, zone)[:4] == b"\x89PNG"
    return kept


def test_a_picture_of_a_mail_tells_times_by_the_clock_of_its_report(monkeypatch):
    times = [f"{START + timedelta(minutes=number):%Y-%m-%dT%H:%M:%SZ}" for number in range(60)]
    [shown] = drawn(charts.over_time(times, {"queue://a": [13] * 60}, "messages"), "Europe/Berlin", monkeypatch)
    assert [label.get_text() for label in shown.get_xticklabels()][:2] == ["14:20\n20 Nov", "14:30"]
    assert shown.get_xlabel() == "CET"


@pytest.mark.parametrize("most", [1, 7, 13, 25, 99, 12_345])
def test_the_numbers_of_an_axis_of_a_picture_are_what_its_marks_are_at(most, monkeypatch):
    times = ["2026-11-20T13:12:00Z", "2026-11-20T13:13:00Z"]
    [shown] = drawn(charts.lines(times, {"a": [0, most]}, "messages"), "UTC", monkeypatch)
    for label in shown.get_yticklabels():
        assert float(label.get_text().replace(",", "").replace("\N{MINUS SIGN}", "-")) == pytest.approx(
            label.get_position()[1]
        )
