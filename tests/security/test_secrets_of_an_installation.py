"""No process, log, page or answer of a whole installation shows a secret that it was given in a file."""

from __future__ import annotations

import psutil
import pytest

from tests.e2e.installation import Installation
from tests.security.test_secret_variables import SECRETS

#: Those that an installation on its own store and database can be given, and still starts.
GIVEN = (
    "SLUICE_TLS_PASSWORD",
    "SLUICE_CLUSTER_PASSWORD",
    "SLUICE_MAIL",
    "SLUICE_OIDC_CLIENT_SECRET",
    "SLUICE_PASSWORD",
)
PAGES = ("/", "/account/", "/topology/", "/topology/shards/", "/admin/", "/analytics/sql/", "/api/v1/me",
         "/api/v1/overview", "/api/v1/nodes", "/api/openapi.json", "/readyz")  # fmt: skip


@pytest.mark.long
def test_an_installation_shows_none_of_the_secrets_it_was_given_in_files(tmp_path):
    here = Installation(tmp_path / "data")
    here.environment |= {"SLUICE_OIDC_ISSUER": "http://127.0.0.1:9", "SLUICE_OIDC_CLIENT_ID": "sluice"}
    for name in GIVEN:
        (tmp_path / name).write_text(f"{SECRETS[name][0]}\n")
        here.environment[f"{name}_FILE"] = str(tmp_path / name)
    with here:
        processes = [psutil.Process(here.process.pid), *psutil.Process(here.process.pid).children(recursive=True)]
        assert len(processes) > 8
        shown = {f"process {each.pid}": [*each.cmdline(), *each.environ().values()] for each in processes}
        browser = here.browser()
        shown |= {path: list(browser.get(path)) for path in PAGES}
    logs = [*(here.folder / "log").iterdir(), here.output]
    assert len(logs) > 8
    shown |= {path.name: [path.read_text(errors="replace")] for path in logs}
    secrets = [SECRETS[name][1] for name in GIVEN]
    found = {place for place, texts in shown.items() for text in texts if any(each in text for each in secrets)}
    assert found == set()
