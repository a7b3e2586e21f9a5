"""The simulator: virtual time, imaginary worlds, faults and the judges of the invariants.

Nothing in here is needed to run the service.
"""
