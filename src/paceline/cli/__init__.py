"""The command line: a thin layer that reads arguments and prints answers.

No rule about sending lives here.
"""
