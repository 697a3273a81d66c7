"""The supervisor with real child processes, real kills and real ports."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from brokerapp.checks.ports import PortUse, port_problems
from console.ops import processes, supervisor
from tests.waiting import wait_until

PATIENCE = 30.0
PROJECT = Path(__file__).resolve().parents[2]

# Its parts: one that is ready when its file is there, one that has a child, and one that will not end when asked.
SUPERVISOR = """
import sys
from pathlib import Path
from console.ops import supervisor
from console.ops.processes import WORKER_HIDDEN_LINES
from console.ops.supervisor import ProcessSpec, Supervisor

folder = Path(sys.argv[1])
supervisor.FIRST_DELAY_SECONDS = 0.1
supervisor.STILL_SECONDS = 0.2
python = sys.executable

FIRST = '''
import pathlib, signal, sys, time
def goodbye(*_):
    time.sleep(float(sys.argv[2]))
    print("first says goodbye")
    sys.exit()
signal.signal(signal.SIGTERM, goodbye)
pathlib.Path(sys.argv[1]).touch()
print("first says hello")
print("worker: Hitting Ctrl+C again will terminate all running tasks!")
time.sleep(60)
'''
PARENT = '''
import subprocess
child = subprocess.Popen(["sleep", "60"])
print("its child is", child.pid)
raise SystemExit(child.wait())
'''
STUBBORN = '''
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("stubborn is up")
while True:
    time.sleep(60)
'''
parts = [
    ProcessSpec(
        "first", [python, "-c", FIRST, str(folder / "ready"), "1.5" if "writing" in sys.argv else "0"],
        hidden_lines=WORKER_HIDDEN_LINES,
        ready=lambda: (folder / "ready").exists() and ("slow" not in sys.argv or (folder / "go").exists()),
        is_needed="needed" in sys.argv,
    ),
    ProcessSpec("parent", [python, "-c", PARENT]),
]
if "refused" in sys.argv:
    refused = "import sys; print('error: the store evicts keys', flush=True); sys.exit(int(sys.argv[1]))"
    parts.append(ProcessSpec("refused", [python, "-c", refused, sys.argv[-1]], ready=lambda: "ready" in sys.argv))
if "stubborn" in sys.argv:
    parts.append(ProcessSpec("stubborn", [python, "-c", STUBBORN], grace=float(sys.argv[3])))

def say(line):
    print(line, flush=True)

Supervisor(parts, folder, say).run(announce=lambda: say("all are ready"))
"""


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


class Run:
    """A supervisor in a process of its own, and what it has said."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.said_file = folder.with_suffix(f".said{time.monotonic_ns()}")
        with self.said_file.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", SUPERVISOR, str(folder), *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=PROJECT,
            )

    @property
    def said(self) -> str:
        return self.said_file.read_text()

    def until_said(self, text: str) -> None:
        wait_until(lambda: text in self.said or self.process.poll() is not None, text)
        assert text in self.said, self.said

    def family(self) -> list[int]:
        """Process ids of all parts and of what they started."""
        return [child.pid for child in psutil.Process(self.process.pid).children(recursive=True)]

    def child(self, position: int) -> int:
        """The process id of the part at this position of the table."""
        children = psutil.Process(self.process.pid).children()
        return sorted(children, key=lambda child: child.create_time())[position].pid


@pytest.fixture
def started(tmp_path):
    runs = []

    def start(*arguments: str) -> Run:
        runs.append(Run(tmp_path / "data", *arguments))
        return runs[-1]

    yield start
    for run in runs:
        run.process.terminate()
        run.process.wait(PATIENCE)
        for orphan in re.findall(r"its child is (\d+)", run.said):  # of a supervisor that the test killed
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(orphan), signal.SIGKILL)


def test_parts_start_in_order_each_after_the_one_before_is_ready(started):
    run = started()
    run.until_said("all are ready")
    run.until_said("its child is")
    assert run.said.index("first says hello") < run.said.index("its child is")
    assert "first          | first says hello" in run.said
    log = run.folder / "log" / "first.log"
    kept = log.read_text().splitlines()
    assert log.stat().st_mode & 0o777 == 0o600
    assert kept[0] == "first says hello"
    assert "Hitting Ctrl+C" in kept[1], "what nobody needs to be told is in the log"
    assert "Hitting" not in run.said


@pytest.mark.parametrize(
    ("pattern", "line", "shown"),
    [
        (processes.WORKER_HIDDEN_LINES, "worker: Cold shutdown (MainProcess)", False),
        (
            processes.WORKER_HIDDEN_LINES,
            "[WARNING/MainProcess] Initiating Soft Shutdown, terminating in 5.0 seconds",
            False,
        ),
        (processes.WORKER_HIDDEN_LINES, "", False),
        (
            processes.WORKER_HIDDEN_LINES,
            "[ERROR/MainProcess] Task analytics.tasks.run raised unexpected: ValueError",
            True,
        ),
        (processes.SPARK_HIDDEN_LINES, "\tat org.apache.spark.sql.connect.execution.X.run(X.scala:102)", False),
        (
            processes.SPARK_HIDDEN_LINES,
            "23:24:24 ERROR Executor: Exception in task 0.0: java.lang.OutOfMemoryError",
            True,
        ),
        (processes.WEB_HIDDEN_LINES, 'INFO:     127.0.0.1:50000 - "WebSocket /live" [accepted]', False),
        (processes.WEB_HIDDEN_LINES, "INFO:     connection open", False),
        (processes.WEB_HIDDEN_LINES, "INFO:     connection closed", False),
        (processes.WEB_HIDDEN_LINES, 'INFO:     127.0.0.1:50000 - "WebSocket /live" 403', True),
        (processes.WEB_HIDDEN_LINES, "ERROR:    Exception in ASGI application", True),
        (processes.WEB_HIDDEN_LINES, "INFO:     Uvicorn running on http://127.0.0.1:8000 (Press CTRL+C to quit)", True),
    ],
)
def test_what_goes_on_in_a_part_alone_is_not_shown_and_its_errors_are(pattern, line, shown):
    assert (pattern.search(line) is None) is shown


def test_the_terminal_does_not_tell_of_the_tabs_of_browsers(tmp_path):
    table = processes.process_specs(processes.Environment.read({"SLUICE_DATA": str(tmp_path)}))
    [web] = [part for part in table if part.name == "web"]
    assert web.hidden_lines is processes.WEB_HIDDEN_LINES


def test_what_others_cannot_do_without_is_waited_for_however_slowly_it_starts(started):
    run = started("slow", "needed")
    wait_until(lambda: run.said.count("first is still starting after") == 2, "it is said again and again")
    assert "the processes after it are waiting" in run.said
    assert len(run.family()) == 1, "those that need it are not started"
    (run.folder / "go").touch()
    run.until_said("all are ready")


def test_what_others_can_do_without_is_said_to_start_slowly_and_waited_for_no_longer(started):
    run = started("slow")
    run.until_said("its child is")
    assert "the processes after it are being started" in run.said
    wait_until(lambda: run.said.count("first is still starting after") >= 2, "it is said again and again")
    assert "all are ready" not in run.said
    (run.folder / "go").touch()
    run.until_said("all are ready")
    assert run.said.index("first is ready after") < run.said.index("all are ready")


@pytest.mark.parametrize(("load", "expected"), [(0.5, 10), (2, 10), (20, 100), (1000, 120)])
def test_on_a_busy_machine_a_part_has_longer_to_end(load, expected):
    assert supervisor.stop_timeout(10, load, 2) == expected


def test_a_part_that_was_given_longer_on_a_busy_machine_keeps_that_when_others_are_done(tmp_path, monkeypatch):
    now, killed = [0.0], []
    monkeypatch.setattr(supervisor, "time", SimpleNamespace(monotonic=lambda: now[0]))
    child = supervisor.SupervisedProcess(supervisor.ProcessSpec("slow", ["none"], grace=10), tmp_path, 0, say=str)
    child.process = SimpleNamespace(poll=lambda: None, terminate=lambda: None)
    child.kill = lambda: killed.append(now[0])
    child.terminate()
    for moment, load in ((1.0, 6.0), (25.0, 0.5), (31.0, 0.5)):
        now[0] = moment
        monkeypatch.setattr(supervisor.os, "getloadavg", lambda load=load: (load * supervisor.PROCESSORS / 2, 0, 0))
        assert not child.has_ended(hurry=False)
    assert killed == [31.0]


def test_a_killed_part_is_started_again(started):
    run = started()
    run.until_said("all are ready")
    first = run.child(0)
    os.kill(first, signal.SIGKILL)
    run.until_said("first was killed by SIGKILL; restarting in 0.1 s")
    wait_until(lambda: run.said.count("first says hello") == 2, "it says hello again")
    assert first not in run.family()


def test_a_part_that_dies_takes_its_own_children_with_it(started):
    run = started()
    run.until_said("its child is")
    grandchild = int(re.search(r"its child is (\d+)", run.said).group(1))
    os.kill(run.child(1), signal.SIGKILL)
    wait_until(lambda: gone(grandchild), "the grandchild is gone")


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, *(pytest.param(each, marks=pytest.mark.long) for each in (signal.SIGINT, signal.SIGHUP))]
)
def test_a_signal_stops_everything_even_what_will_not_end(started, number):
    run = started("stubborn", "0.3")
    run.until_said("all are ready")
    run.until_said("stubborn is up")
    run.until_said("its child is")
    family = run.family()
    run.process.send_signal(number)
    assert run.process.wait(PATIENCE) == 0
    assert len(family) == 4
    assert [pid for pid in family if not gone(pid)] == []
    assert run.said.index("stubborn did not stop and was killed") < run.said.index("first says goodbye")
    assert run.said.endswith("stopped\n")


def test_a_second_signal_stops_without_grace(started):
    run = started("stubborn", "60")
    run.until_said("all are ready")
    run.until_said("stubborn is up")
    run.process.terminate()
    run.until_said("stopping")
    assert run.process.poll() is None
    run.process.terminate()
    assert run.process.wait(PATIENCE) == 0
    assert "stubborn did not stop and was killed" in run.said


def test_what_others_cannot_do_without_ends_in_its_own_time_however_often_one_asks(started):
    run = started("stubborn", "60", "needed", "writing")
    run.until_said("all are ready")
    run.until_said("stubborn is up")
    for _ in range(3):
        run.process.terminate()
        time.sleep(0.1)
    assert run.process.wait(PATIENCE) == 0
    assert "stubborn did not stop and was killed" in run.said
    assert "first does not end" not in run.said
    assert "first says goodbye" in run.said


def test_the_children_of_a_killed_supervisor_end_and_the_next_one_waits_for_them(started):
    run = started()
    run.until_said("all are ready")
    parts = [run.child(0), run.child(1)]
    run.process.kill()
    run.process.wait()
    again = started()
    again.until_said("all are ready")
    assert all(gone(pid) for pid in parts)


def test_a_second_supervisor_is_refused_and_told_who_the_first_is(started):
    run = started()
    run.until_said("all are ready")
    second = started()
    assert second.process.wait(PATIENCE) != 0
    assert f"is in use by process {run.process.pid}" in second.said


def test_restart_delays_double_up_to_a_limit():
    assert [supervisor.restart_delay(deaths) for deaths in (1, 2, 3, 4)] == [0.5, 1.0, 2.0, 4.0]
    assert supervisor.restart_delay(1000) == supervisor.LONGEST_DELAY_SECONDS


def test_a_log_is_bounded_and_nothing_is_shown_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "LOG_LIMIT_BYTES", 100)
    shown = []
    log = supervisor.ProcessLog(tmp_path / "part.log", shown.append)
    lines = [f"line {number:03}" for number in range(100)]
    with log.path.open("a") as child:
        for line in lines:
            child.write(line + "\n")
            child.flush()
            log.follow()
    assert shown == lines
    assert log.path.stat().st_size <= 110
    assert (tmp_path / "part.log.1").stat().st_size <= 110


def test_the_log_of_the_run_before_is_kept(tmp_path):
    path = tmp_path / "part.log"
    path.write_text("last words\n")
    supervisor.ProcessLog(path, print)
    assert path.read_text() == ""
    assert (tmp_path / "part.log.1").read_text() == "last words\n"


def test_a_taken_port_is_named_with_the_variable_that_moves_it():
    with socket.create_server(("127.0.0.1", 0)) as holder:
        taken = holder.getsockname()[1]
        troubles = list(port_problems([PortUse(taken, "STOMP", "SLUICE_STOMP_PORT")]))
    sentence = f"port {taken} on 127.0.0.1, configured for STOMP, is taken: set SLUICE_STOMP_PORT to another port"
    assert troubles == [sentence]
    assert list(port_problems([PortUse(taken, "STOMP", "SLUICE_STOMP_PORT")])) == []


def test_one_port_for_two_uses_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as holder:
        free = holder.getsockname()[1]
    wanted = [PortUse(free, "the console", "SLUICE_PORT"), PortUse(free, "STOMP", "SLUICE_STOMP_PORT")]
    assert list(port_problems(wanted)) == [
        f"port {free} is configured for both the console and STOMP: set SLUICE_STOMP_PORT to another port"
    ]


def test_only_the_store_is_waited_for_without_end(tmp_path):
    table = processes.process_specs(processes.Environment.read({"SLUICE_DATA": str(tmp_path)}))
    assert [part.name for part in table if part.is_needed] == ["store"]


def test_the_table_has_the_store_only_when_it_is_ours(tmp_path):
    own = processes.Environment.read({"SLUICE_DATA": str(tmp_path)})
    elsewhere = processes.Environment.read({"SLUICE_DATA": str(tmp_path), "REDIS_URL": "redis://store.example:6379"})
    names = [part.name for part in processes.process_specs(own)]
    assert names == ["store", "spark", "worker-spark", "web", "monitor", "archiver", "worker-default", "beat"]
    assert [part.name for part in processes.process_specs(elsewhere)] == names[1:]


def test_a_part_that_its_configuration_keeps_from_starting_ends_all_with_its_reason(started):
    run = started("refused", "78")
    assert run.process.wait(PATIENCE) == 1
    assert run.said.count("refused ended with code 78") == supervisor.REFUSALS - 1
    assert run.said.rstrip().endswith("PermanentFailure: refused cannot start: the store evicts keys")
    assert "\nstopped\n" in run.said, "the others ended in order"


@pytest.mark.parametrize("arguments", [("refused", "3"), ("refused", "ready", "78")])
def test_a_part_that_ends_for_another_reason_or_was_ready_before_is_restarted(started, arguments):
    run = started(*arguments)
    wait_until(lambda: run.said.count("refused ended with") > supervisor.REFUSALS, "it is restarted again and again")
    assert run.process.poll() is None
