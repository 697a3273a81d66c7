"""SQL over recorded traffic: what users may see, saved queries, pages and API."""
