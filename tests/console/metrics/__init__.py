"""Tests of console/metrics."""
