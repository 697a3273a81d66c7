"""REST operations on messages, jobs, searches and dead letters."""
