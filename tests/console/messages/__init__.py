"""Tests of console/messages."""
