"""``paceline``, and ``python -m paceline``: where a command starts.

Nothing is imported before interrupts are looked after: the imports take longer than many a command.
"""

from __future__ import annotations

import sys

INTERRUPTED = 130


def run() -> int:
    try:
        from paceline.cli.main import main

        return main()
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(run())
