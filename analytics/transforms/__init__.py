"""Pure functions from DataFrame to DataFrame, a module for each question. They read no files and hold no session.

They use only what classic and Connect sessions share.
"""
