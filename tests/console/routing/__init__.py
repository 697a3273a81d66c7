"""Tests of console/routing."""
