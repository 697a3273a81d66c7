"""Tests of console/broker."""
