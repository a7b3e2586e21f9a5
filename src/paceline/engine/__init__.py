"""The moving parts: clock, journal, lanes, supervisor, and the ports they speak through.

The engine knows the core and its own ports; it knows no database and no provider.
"""
