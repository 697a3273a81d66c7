"""Builds the data of charts of depth and rates."""
