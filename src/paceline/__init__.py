"""Paceline sends messages from many accounts at the pace each account can bear.

Only the version lives here; `app` is the one place that wires the parts together.
"""

__version__ = "0.1.0"
