"""Hourly and daily tables of measures, derived from the archive by Spark, and what reads them."""
