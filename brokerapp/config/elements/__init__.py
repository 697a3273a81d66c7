"""Reads the elements of a broker's XML, one module for each kind."""
