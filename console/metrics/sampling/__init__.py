"""Samples the broker's numbers periodically, in one process of all."""
