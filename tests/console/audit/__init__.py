"""Tests of console/audit."""
