"""`manage.py up` where it cannot start; that it does is part of tests/e2e."""

import socket
import subprocess

from tests.e2e.installation import Installation


def test_a_taken_port_stops_the_start_and_is_named(tmp_path):
    here = Installation(tmp_path / "data")
    with socket.create_server(("127.0.0.1", here.stomp)):
        done = subprocess.run(here.manage("up"), env=here.environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"port {here.stomp} on 127.0.0.1, configured for STOMP, is taken" in done.stderr
    assert "set SLUICE_STOMP_PORT to another port" in done.stderr
    assert not here.folder.exists(), "a start that is refused leaves nothing"
