"""Spark sessions and the Spark Connect server, the data source, and the execution of one run."""
