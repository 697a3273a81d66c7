"""Which node owns each log, and how ownership changes hands."""
