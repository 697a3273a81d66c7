"""Print what Helm renders of a chart as YAML: `render_chart.py CHART VALUES`, where VALUES is JSON.

A program of its own, because Helm's library brings the runtime of Go into the process.
"""

from __future__ import annotations

import json
import sys

from helm_python import Chart, HelmError, lint

WARNING = 2  #: severity of a finding of Helm's linter; errors have a higher one


def render(path: str, values: dict) -> str:
    """Return the manifests of a chart, after checking chart and values as Helm does; raises HelmError."""
    problems = [each["error"] for each in lint(path, values)["messages"] if each["severity"] >= WARNING]
    if problems:
        raise HelmError("\n".join(problems))
    with Chart.load(path) as chart:
        chart.validate_schema(values)
        rendered = chart.render(values, name="orders", namespace="shop")
    return "\n".join(
        f"---\n{text}" for name, text in sorted(rendered.items()) if name.endswith(".yaml") and text.strip()
    )


if __name__ == "__main__":
    try:
        sys.stdout.write(render(sys.argv[1], json.loads(sys.argv[2])))
    except HelmError as error:
        sys.exit(f"error: {error}")
