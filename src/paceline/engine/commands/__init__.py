"""What operators can do, as functions over one transaction: for the CLI, the API and the console.

Each command checks, changes, and wakes whom it concerns in the same transaction. A command that
must be in force before the next message first calls ``fence``, which waits for intents that are
being committed and holds back new ones until the command is durable.
"""
