"""`make audit` names known vulnerabilities, and says what it needs where it cannot know them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.security.supply_chain import run_program

VULNERABILITY = {
    "id": "GHSA-0000-0000-0001",
    "aliases": ["CVE-2099-1"],
    "summary": "Messages are read by others.",
    "affected": [
        {
            "package": {"name": "parcel", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.1"}]}],
        }
    ],
}


class AdvisoryService(BaseHTTPRequestHandler):
    """Answer as OSV does: parcel 1.0 is vulnerable, and nothing else."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_vulnerable = (asked["package"]["name"], asked["version"]) == ("parcel", "1.0")
        answer = json.dumps({"vulns": [VULNERABILITY]} if is_vulnerable else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    """Return the address of an advisory service."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), AdvisoryService)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1/query"
    server.shutdown()
    server.server_close()


def test_a_known_vulnerability_fails_the_audit_and_is_named(service):
    done = run_program("audit.py", service, input="parcel==1.0\nletter==2.0\n")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == "parcel 1.0 has CVE-2099-1, mended in 1.1\n"


@pytest.mark.long
def test_an_audit_without_findings_succeeds(service):
    done = run_program("audit.py", service, input="parcel==1.1\nletter==2.0\n")
    assert (done.returncode, done.stdout) == (0, "no known vulnerabilities in 2 packages\n")


def test_an_audit_whose_service_does_not_answer_fails_with_a_sentence_and_no_traceback():
    done = run_program("audit.py", "http://127.0.0.1:9/v1/query", input="parcel==1.0\n")
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert first.startswith("error: the advisory service does not answer: ")
    assert second.startswith("make audit needs an advisory service: ")
