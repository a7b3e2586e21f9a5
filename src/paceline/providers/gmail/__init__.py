"""Gmail: e-mail from the mailboxes of a Google Workspace, over Google's own HTTP API.

A service account writes in the name of a mailbox (``settings.py``); the tokens for that are fetched
and kept in ``tokens.py``, ``client.py`` makes the calls, what the answers mean is in ``errors.py``,
as a table. What comes back is read in ``mailbox.py``. What letters look like is in ``../mail``. How
to set one up is told in ``docs/providers/gmail.md``.
"""

from __future__ import annotations

from paceline.providers.gmail.provider import GmailProvider
from paceline.providers.gmail.settings import GmailSettings, read_settings

__all__ = ["GmailProvider", "GmailSettings", "read_settings"]
