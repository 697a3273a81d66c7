"""Tests of console/ops."""
