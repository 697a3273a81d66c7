"""Jobs: thin shells that read, transform, and put what was found into words, charts and tables.

A job is a module with STEPS, how many DataFrames it collects, and
`run(question, collect) -> Findings`, where `collect(title, frame)` computes one of them.
"""
