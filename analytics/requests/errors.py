"""How a run can end other than with a result. No pyspark: Celery carries these between processes."""

from __future__ import annotations


class AnalysisFailed(Exception):
    """The run has no result; the text is the reason, for people."""


class SparkStopped(AnalysisFailed):
    """Spark's server ended, or did not answer, while it worked for the run. It is started again, cold."""


class SparkOutOfMemory(AnalysisFailed):
    """Spark's server ended because the run needed more memory than it has: it would again."""


class RunCancelled(Exception):
    """Somebody cancelled the run."""
