"""``paceline``, and ``python -m paceline``: where a command starts.

Nothing is imported before interrupts are looked after: the imports take longer than many a command.
"""

from __future__ import annotations

import gc
import sys

INTERRUPTED = 130


def run() -> int:
    try:
        # What is loaded stays: to look through it for garbage again and again, as it grows, is a
        # tenth of what a short command takes.
        gc.set_threshold(50_000)
        from paceline.cli.main import main

        return main()
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(run())
