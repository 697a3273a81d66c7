"""Speed of analyses: the same questions asked of Spark and of DuckDB, on the same files, in one run."""
