"""WATI: a WhatsApp Business number through the HTTP API of a team inbox, people only.

A number is registered with Meta by way of WATI; here it has an endpoint and a token
(``settings.py``). What a message looks like on the wire is in ``wire.py``, a file that waits to be
sent in ``files.py``, what the answers mean in ``errors.py``, as a table; how a message is looked
for whose answer was lost is in ``finding.py``, and what WATI reports by itself is read in
``webhooks.py``. Whoever has not written in the last 24 hours can be sent nothing but a template
that is approved, and there are no groups: both are capabilities, so that a campaign that asks for
more is refused before it starts. How to connect one is told in ``docs/providers/wati.md``.
"""

from __future__ import annotations

from paceline.providers.wati.provider import WatiProvider
from paceline.providers.wati.settings import WatiSettings, read_settings

__all__ = ["WatiProvider", "WatiSettings", "read_settings"]
