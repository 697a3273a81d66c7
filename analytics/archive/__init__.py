"""Parquet archive of trace events: files, manifest, index, archiver, compaction, retention, integrity checks."""
