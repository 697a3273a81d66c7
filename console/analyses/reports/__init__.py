"""Reports: analyses that are run on a schedule, kept as editions, and mailed."""
