"""Roles, permissions and masking: decides who may see and do what."""
