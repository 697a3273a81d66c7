"""Test what a node keeps out of its memory."""

import subprocess
import sys

#: Packages for others: readers of trace batches, TLS, the console. Together they take as much memory as a whole node.
HEAVY = ("pyarrow", "cryptography.x509", "console", "analytics", "pandas")


def test_a_node_that_serves_without_tls_loads_nothing_that_only_others_need():
    asked = f"import sys, brokerapp.management.runbroker; print({{*sys.modules}} & {{*{HEAVY}}})"
    found = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"
