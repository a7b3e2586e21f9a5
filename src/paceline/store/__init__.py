"""Everything that is SQL: schema, migrations and statements by subject.

Stores implement `engine.ports`; no rule about sending lives here.
"""
