"""What is measured: the rows, their routes and their messages."""
