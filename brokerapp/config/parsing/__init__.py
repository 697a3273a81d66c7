"""Reads the XML document: elements, attributes, placeholders, property files."""
