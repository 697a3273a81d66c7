"""Pages on which admins manage masking rules."""
