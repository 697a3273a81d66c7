"""Tests of console/analyses."""
