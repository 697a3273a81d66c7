"""Jobs that move, copy, resubmit, edit or delete messages in the background; message templates; saved selectors."""
