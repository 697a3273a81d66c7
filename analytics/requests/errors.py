"""Errors that end a run without a result. No pyspark: Celery carries them between processes."""

from __future__ import annotations


class AnalysisFailed(Exception):
    """The run failed; the text is the reason that pages show."""


class SparkStopped(AnalysisFailed):
    """The Spark server stopped or did not respond during the run. It restarts by itself."""


class SparkOutOfMemory(AnalysisFailed):
    """The Spark server ran out of memory during the run, and would do so again."""


class RunCancelled(Exception):
    """The run was cancelled."""
