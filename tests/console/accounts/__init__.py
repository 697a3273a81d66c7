"""Tests of console/accounts."""
