"""What several jobs share: tables of results, latency tables, depths as recorded."""
