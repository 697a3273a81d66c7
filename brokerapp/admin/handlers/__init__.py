"""Carries out operators' requests inside a node."""
