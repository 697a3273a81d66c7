"""Upgrade what an earlier version of Sluice stored: plan, progress, and the command for a broker without a console."""
