"""The yardstick: how fast the whole engine is, what its lanes cost, and what a claim costs.

Not shipped. ``scripts/bench`` runs it; ``docs/performance.md`` says what is measured and how.
"""
