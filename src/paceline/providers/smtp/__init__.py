"""SMTP: e-mail through the mail server of whoever sends it.

An account is a mailbox: a server, a login, an address (``settings.py``). ``line.py`` is one
connection and knows how far a letter has got, ``driver.py`` the open account with those it keeps.
What letters look like and what servers answer is in ``../mail``. How to set one up is told in
``docs/providers/smtp.md``.
"""

from __future__ import annotations

from paceline.providers.smtp.provider import SmtpProvider
from paceline.providers.smtp.settings import SmtpSettings, read_settings

__all__ = ["SmtpProvider", "SmtpSettings", "read_settings"]
