"""The schema's history: one module per step in ``versions``, run by ``paceline.store.migrate``."""
