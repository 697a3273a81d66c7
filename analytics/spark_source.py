"""Keeps the documented import `from analytics.spark_source import SluiceSource` valid."""

from analytics.spark.data_source import SluiceSource as SluiceSource
