"""The drivers: effects at the outside world, one module or folder each.

A driver has no policy; when to send is decided before it is called.
"""
