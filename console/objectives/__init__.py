"""Objectives: the share of messages that is to be acknowledged in time, with attainment, error budget and burn rate."""
