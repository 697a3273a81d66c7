"""Tests of console/access."""
