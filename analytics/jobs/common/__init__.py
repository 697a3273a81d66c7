"""Code that several jobs share: tables of results, latency tables, recorded depths."""
