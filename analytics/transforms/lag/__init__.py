"""Transforms of the lag analysis: what waits since when, and how fast it is served."""
