"""Test the ways in which runs end, with a real worker and a real Spark server."""

import os
import re
import resource
import shutil
import signal
import time
from contextlib import contextmanager

import generated_events
import psutil
import pyarrow.parquet as pq
import pytest
import redis
from recorded_traffic import wait_until
from spark_installation import PATIENCE, REQUEST, Installation

from analytics.archive import manifest
from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.data_files import HOUR_US, data_files, hour_folders
from analytics.results import storage
from analytics.sql.access import DataAccess
from analytics.tables.definitions import DAY_US
from analytics.tables.status import last_build
from analytics.tables.storage import FolderStorage

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def installation(tmp_path_factory, store_url):
    data = tmp_path_factory.mktemp("data")
    with redis.Redis.from_url(store_url) as client:
        client.flushall()
    made = Installation(data, store_url, SLUICE_SPARK_PATIENCE="8", SLUICE_HOURLY_TABLE_DAYS="0")
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def nothing_left_running(installation):
    """What a test that failed leaves would keep the worker from the runs of the next one."""
    yield
    for run_id in installation.under_way():
        installation.send("cancel", run_id)


@pytest.mark.long
def test_spark_is_warmed_up_before_anybody_asks_and_nothing_is_left_of_it(installation):
    log = installation.data / "celery.log"
    wait_until(lambda: re.search("Spark (is|was not) warmed up", log.read_text()), 2 * PATIENCE)
    assert "Spark is warmed up" in log.read_text()
    assert not list((installation.data / "spark" / "scratch").glob("warm-up-*"))
    assert not (installation.data / "results").exists()


def test_an_analysis_of_an_archive_that_does_not_exist_says_so(installation):
    run_id = installation.analyse(REQUEST)
    state, info = installation.end_of(run_id)
    assert (state, info) == (
        "done",
        {"result": f"{run_id}/result.json", "sentence": "No data in this time range."},
    )


def test_an_analysis_runs_through_its_states_and_leaves_its_result(installation):
    generated_events.write(installation.data / "archive", 2000)
    run_id = installation.analyse(REQUEST)
    state, info = installation.end_of(run_id)
    assert state == "done", info
    result = storage.load_result(installation.data / "results", run_id)
    assert info == {"result": f"{run_id}/result.json", "sentence": result["sentence"]}
    assert result["rows_read"] > 2000
    assert 0 < time.time_ns() // 1000 - result["freshness_us"] < 60_000_000  # the stream was read up to its end
    assert result["tables"][0]["title"] == "Traffic by destination"
    assert len(result["tables"][0]["rows"]) == 5
    states = [state for state, _ in installation.told(run_id)]
    assert states == ["starting", "done"], "progress does not go by Celery"
    progress = installation.progress(run_id)
    assert (progress["stage"][:6], 0.5 <= progress["progress"] <= 1) == ("2 of 2", True)


def test_tables_are_computed_by_a_worker_and_read_by_runs_over_more_than_a_day(installation):
    archive = installation.data / "archive"
    if not archive.exists():
        generated_events.write(archive, 2000)
    end_us = generated_events.START_US + generated_events.SPAN_US
    (broker,) = BrokerArchive.archives_in(archive)
    broker.write_freshness(end_us + HOUR_US)  # the archiver is not running
    installation.send("check_tables")
    wait_until(lambda: (installation.data / "tables" / "last_build.json").exists(), PATIENCE)
    build = last_build(FolderStorage(installation.data / "tables"))
    assert (build.error, build.events > 2000) == ("", True)
    since_us = generated_events.START_US - 2 * DAY_US
    run_id = installation.analyse({"kind": "fan-out", "since_us": since_us, "until_us": end_us - HOUR_US // 2})
    assert installation.end_of(run_id)[0] == "done"
    result = storage.load_result(installation.data / "results", run_id)
    assert result["levels"] == {"daily": 0, "hourly": 11, "raw_seconds": result["levels"]["raw_seconds"]}
    assert result["levels"]["raw_seconds"] == 1800
    assert result["tables"][0]["title"] == "By original destination"


def test_sql_runs_on_the_server_with_its_access_and_nothing_else_runs(installation):
    generated_events.write(installation.data / "archive", 2000)
    access = DataAccess(destinations=(("a",),), properties=None).to_json()

    def end(statement, **more):
        run_id = installation.analyse({**REQUEST, "kind": "sql", "statement": statement, "access": access, **more})
        return run_id, *installation.end_of(run_id)

    run_id, state, info = end(
        "WITH d AS (SELECT * FROM deliveries) SELECT destination, outcome, count(*) AS n, max(arrived_at) AS last,"
        " (SELECT count(*) FROM messages) AS sent FROM d GROUP BY ALL ORDER BY n DESC", chart="bar", x="outcome", y="n",
    )  # fmt: skip
    assert state == "done", info
    result = storage.load_result(installation.data / "results", run_id)
    [table], [chart] = result["tables"], result["charts"]
    assert {row[0] for row in table["rows"]} == {"queue://a"}
    assert sum(row[2] for row in table["rows"]) == table["rows"][0][4] > 100
    assert chart["figure"]["data"][0]["y"] == [row[1] for row in table["rows"]]
    assert result["about"]["schema"] == 1
    assert result["levels"] == {"daily": 0, "hourly": 0, "raw_seconds": generated_events.WINDOW.seconds}
    _, state, info = end("SELECT destination FROM parquet.`/etc/passwd`")
    assert (state, info["reason"]) == (
        "failed", "Line 1, column 25: parquet.`/etc/passwd` is not available: FROM takes views only.",
    )  # fmt: skip
    _, state, info = end("SELECT destination FROM messages", access=None)
    assert (state, info["reason"]) == ("failed", "The request does not say what its user may see.")
    _, state, info = end("SELECT destination, size FROM messages GROUP BY destination")
    assert (state, "size" in info["reason"], "sluice_" in info["reason"]) == ("failed", True, False), info


@pytest.fixture
def second_archive(installation):
    """An archive of another broker beside that of the installation, for damage that is no other test's business."""
    folder = installation.data / "archive"
    generated_events.write(folder, 300, broker="second")
    yield hour_folders(folder / "broker=second")
    shutil.rmtree(folder / "broker=second")


def completeness_of(installation) -> dict:
    run_id = installation.analyse(REQUEST)
    state, info = installation.end_of(run_id)
    assert state == "done", info
    return storage.load_result(installation.data / "results", run_id)["completeness"]


def test_a_result_says_that_it_is_complete_and_which_files_could_not_be_read(installation, second_archive):
    before = completeness_of(installation)
    assert (before["complete"], before["set_aside"]) == (True, [])
    first, second, _ = (data_files(hour)[0].path for hour in second_archive)
    rows = [manifest.read(path.parent)[path.name].rows for path in (first, second)]
    first.unlink()
    second.write_bytes(b"")
    after = completeness_of(installation)
    assert (after["complete"], after["files"], after["rows_missing"]) == (False, before["files"] - 2, sum(rows))
    assert [(each["file"].rpartition("/")[2], each["reason"], each["rows"]) for each in after["set_aside"]] == [
        (first.name, "missing", rows[0]), (second.name, "damaged", rows[1]),
    ]  # fmt: skip


def test_a_file_that_rotted_unseen_is_left_out_once_spark_cannot_read_it(installation, second_archive):
    path = data_files(second_archive[1])[0].path
    found = pq.read_metadata(path).row_group(0).column(0)
    written, content = path.stat().st_mtime_ns, bytearray(path.read_bytes())
    content[found.data_page_offset + 40 : found.data_page_offset + 60] = bytes(20)
    path.write_bytes(content)
    os.utime(path, ns=(0, written))
    told = completeness_of(installation)
    assert [(each["file"].rpartition("/")[2], each["reason"]) for each in told["set_aside"]] == [(path.name, "damaged")]


def test_a_run_that_is_delivered_twice_is_computed_once(installation):
    run_id = installation.analyse(REQUEST)
    installation.end_of(run_id)
    written = (installation.data / "results" / run_id / "result.json").stat()
    installation.send("analyse", run_id, REQUEST)
    wait_until(lambda: [state for state, _ in installation.told(run_id)].count("done") == 2)
    assert (installation.data / "results" / run_id / "result.json").stat().st_ino == written.st_ino
    assert [state for state, _ in installation.told(run_id)].count("starting") == 1


def test_an_analysis_that_does_not_exist_fails_with_a_sentence(installation):
    state, info = installation.end_of(installation.analyse({"kind": "weather"}))
    assert state == "failed"
    assert info["reason"].startswith("'weather' is not a known analysis: expected one of traffic, ")


def test_a_query_that_spark_refuses_fails_with_the_condition_and_no_trace(installation):
    state, info = installation.end_of(installation.analyse({"kind": "failing"}))
    assert state == "failed"
    assert info["reason"].startswith("ArithmeticException: DIVIDE_BY_ZERO: Division by zero.")
    assert "\n" not in info["reason"]
    assert "at org.apache" not in info["reason"]


def test_a_running_analysis_is_cancelled_within_a_second_and_spark_goes_idle(installation):
    run_id = installation.analyse({"kind": "endless"})
    installation.wait_for_work(run_id)
    server = psutil.Process(installation.server.pid)
    wait_until(lambda: server.cpu_percent(0.5) > 20)
    sent = time.monotonic()
    installation.send("cancel", run_id)
    state, info = installation.end_of(run_id)
    assert time.monotonic() - sent < 1.0
    wait_until(lambda: server.cpu_percent(0.1) < 20)
    assert time.monotonic() - sent < 1.5
    assert (state, info) == ("cancelled", {"reason": "Cancelled."})
    state, info = installation.end_of(installation.analyse(REQUEST))
    assert state == "done", info


def test_an_analysis_that_waits_is_cancelled_before_it_starts(installation):
    busy = [installation.analyse({"kind": "slow"}) for _ in range(2)]
    for each in busy:
        installation.wait_for_work(each)
    waiting = installation.analyse(REQUEST)
    for each in (waiting, *busy):
        installation.send("cancel", each)
    for each in (waiting, *busy):
        assert installation.end_of(each)[0] == "cancelled"
    assert installation.end_of(installation.analyse(REQUEST))[0] == "done"
    assert [state for state, _ in installation.told(waiting)] == ["cancelled"]


def test_a_worker_child_that_is_killed_is_a_failure_with_a_reason(installation):
    run_id = installation.analyse({"kind": "slow"})
    installation.wait_for_work(run_id)
    for child in psutil.Process(installation.worker.pid).children():
        child.kill()
    state, info = installation.end_of(run_id)
    assert state == "lost"
    assert info["reason"] == "The worker process was killed. The host may have run out of memory."


# -- limits and full resources


def test_an_analysis_that_takes_too_long_is_stopped_and_says_so(installation):
    run_id = installation.analyse({"kind": "endless"}, soft_time_limit=3, time_limit=30)
    state, info = installation.end_of(run_id)
    assert (state, info["reason"]) == (
        "failed", "Timed out after 3 s. Choose a shorter time range.",
    )  # fmt: skip
    server = psutil.Process(installation.server.pid)
    wait_until(lambda: server.cpu_percent(0.1) < 20)


def test_an_analysis_that_does_not_stop_when_its_time_is_over_is_killed_and_that_is_told(installation):
    before = both_children(installation.worker.pid)
    run_id = installation.analyse({"kind": "uncancellable"}, soft_time_limit=2, time_limit=4)
    state, info = installation.end_of(run_id)
    assert (state, info["reason"]) == (
        "failed", "Killed after 4 s: it did not stop at its time limit.",
    )  # fmt: skip
    wait_until(lambda: (now := both_children(installation.worker.pid)) and now != before)  # another takes its place


@contextmanager
def no_room(process: psutil.Process, size: int = 100_000):
    """As on a full disk: none of its files may grow beyond so many bytes."""
    before = process.rlimit(resource.RLIMIT_FSIZE)
    process.rlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        process.rlimit(resource.RLIMIT_FSIZE, before)


def both_children(worker: int) -> list[psutil.Process]:
    """The worker's two processes, once both are there and alive."""
    found = [each for each in psutil.Process(worker).children() if is_alive(each)]
    return found if len(found) == 2 else []


def is_alive(process: psutil.Process) -> bool:
    """Whether it does not end just now, as one does that the worker killed."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_result_for_which_there_is_no_room_fails_with_the_reason_and_leaves_nothing(installation):
    children = wait_until(lambda: both_children(installation.worker.pid))  # one may have been killed just now
    with no_room(children[0]), no_room(children[1]):
        run_id = installation.analyse({"kind": "large"})
        state, info = installation.end_of(run_id)
    assert (state, info["reason"].partition(" (")[0]) == ("failed", "No disk space for the result")
    assert not list((installation.data / "results").glob(f"*{run_id}*"))
    assert installation.end_of(installation.analyse(REQUEST))[0] == "done"


def test_a_disk_that_is_full_where_spark_spills_fails_the_run_and_the_next_one_works(installation):
    with no_room(psutil.Process(installation.server.pid)):
        state, info = installation.end_of(installation.analyse({"kind": "spilling"}))
    assert (state, info["reason"].partition(".")[0]) == (
        "failed", "Spark ran out of disk space",
    )  # fmt: skip
    assert installation.end_of(installation.analyse(REQUEST))[0] == "done"


@pytest.mark.long
def test_a_server_that_is_killed_fails_its_run_with_the_reason_and_the_next_run_works(installation):
    stopped = installation.analyse({"kind": "slow"})
    installation.wait_for_work(stopped)
    installation.server.kill()
    assert installation.restart_server() == -signal.SIGKILL
    state, info = installation.end_of(stopped)
    assert (state, info["reason"].partition(".")[0]) == ("lost", "The Spark server stopped during the run")
    assert installation.end_of(installation.analyse(REQUEST))[0] == "done"


@pytest.mark.long
def test_a_worker_that_is_killed_whole_says_when_it_is_back_that_its_runs_are_lost(installation):
    run_id = installation.analyse({"kind": "slow"})
    installation.wait_for_work(run_id)
    name = next(info["worker"] for state, info in installation.told(run_id) if state == "starting")
    installation.kill_worker()
    installation.worker = installation.start_worker("spark", 2)
    assert wait_until(installation.started_workers, PATIENCE)[-1] == name
    installation.send("cancel", run_id)  # as the console does with what is lost: it is not begun again
    assert installation.end_of(run_id)[0] == "cancelled"
    assert installation.end_of(installation.analyse(REQUEST))[0] == "done"


@pytest.mark.long
def test_a_server_that_is_frozen_is_killed_while_a_run_waits_for_it_and_the_next_one_works(installation):
    stopped = installation.analyse({"kind": "slow"})
    installation.wait_for_work(stopped)
    os.kill(installation.server.pid, signal.SIGSTOP)
    assert installation.restart_server() == -signal.SIGKILL
    state, info = installation.end_of(stopped)
    assert state == "lost"
    assert re.fullmatch(r"The Spark server did not respond for \d+ s and was restarted\.", info["reason"])
    assert installation.end_of(installation.analyse(REQUEST))[0] == "done"


@pytest.mark.long
def test_a_server_that_froze_while_nothing_ran_costs_the_next_run_a_restart(installation):
    os.kill(installation.server.pid, signal.SIGSTOP)
    run_id = installation.analyse(REQUEST)
    assert installation.restart_server() == -signal.SIGKILL
    state, info = installation.end_of(run_id)
    assert state == "done" or info["reason"].startswith("The Spark server did not respond for"), info
    assert installation.end_of(installation.analyse(REQUEST))[0] == "done"


@pytest.mark.long
def test_a_server_without_memory_dies_its_run_fails_with_the_reason_and_the_next_one_works(installation):
    hungry = installation.analyse({"kind": "memory"})
    assert installation.server.wait(PATIENCE) != 0
    state, info = installation.end_of(hungry)
    assert (state, info["reason"].partition(" (")[0]) == ("failed", "Spark ran out of memory")
    installation.restart_server()
    assert installation.end_of(installation.analyse(REQUEST))[0] == "done"
