"""Computes when a scheduled message is due."""
