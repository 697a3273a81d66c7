"""Tests of console/ui."""
