"""Tests of console/topology."""
