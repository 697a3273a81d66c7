"""Tests of console/destinations."""
