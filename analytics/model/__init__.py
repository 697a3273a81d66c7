"""Pure helpers without I/O and Spark: time buckets, depth series, consumer states, coverage, capacity, wording."""
