"""Compute the tables of measures with Spark: whole hours, and current hours from the stream."""
