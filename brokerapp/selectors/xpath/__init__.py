"""XPATH conditions of selectors, computed in a process of their own.

A short expression can keep a computer busy for years, or fill its memory, and nothing in a library of XPath ends that.
Here the operating system does: `worker.py` is ended when it takes too long, `xpath_process.py` asks it and starts it.
"""
