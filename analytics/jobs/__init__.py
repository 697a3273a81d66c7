"""Jobs: each reads events, applies transforms and formats the result as sentences, charts and tables.

A job is a module with STEPS, how many DataFrames it collects, and
`run(question, collect) -> Findings`, where `collect(title, frame)` computes one of them.
"""
