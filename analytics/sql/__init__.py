"""SQL over recorded traffic: views, checked statements, rights on rows and properties, charts of results."""
