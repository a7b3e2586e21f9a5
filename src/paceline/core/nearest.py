"""The words "did you mean …?", for a name that somebody mistyped.

Only the choice of words lives here; who refuses the name, and why, is the caller's affair.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LIKENESS = 0.6


def did_you_mean(name: str, known: Iterable[str], *, limit: int = 1) -> str:
    """``", did you mean 'spacing'?"``, ready to append, or nothing when no name comes close."""
    by_folded = {candidate.casefold(): candidate for candidate in sorted(known)}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=limit, cutoff=_LIKENESS)
    if not close:
        return ""
    quoted = [repr(by_folded[folded]) for folded in close]
    listed = quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
    return f", did you mean {listed}?"
