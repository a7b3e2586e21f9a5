"""The pure rules: what may be sent, when, and why not now.

Nothing in here does I/O, reads a clock or draws a random number it was not handed.
"""
