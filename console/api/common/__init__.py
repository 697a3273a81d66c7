"""Authentication, inputs, paging and error documents that all REST operations share."""
