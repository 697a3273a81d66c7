"""Exports of results and editions of reports as one file: HTML, PDF or PNG."""
