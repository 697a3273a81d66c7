"""Tests of console/api."""
