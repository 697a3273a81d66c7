"""Connections and subscribers of the broker."""
