"""Tests of console/alerts."""
