"""What a run is asked: the catalogue of analyses, their parameters, the request, the question, and its errors."""
