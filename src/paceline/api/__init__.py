"""The HTTP interface: a thin layer over the engine's commands and queries.

It touches no database and no provider by itself.
"""
