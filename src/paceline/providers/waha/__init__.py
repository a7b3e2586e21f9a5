"""WAHA: WhatsApp, people and groups, through an HTTP API that one runs oneself.

A phone is paired with a session of one's own WAHA; here it has an address, a session's name and a
key (``settings.py``). What a message looks like on the wire is in ``wire.py``, what the answers
mean in ``errors.py`` and ``status.py``, both as tables; what WAHA reports by itself is read in
``webhooks.py``. Every message goes out under an id that is made from our own name of it: that is
how a lost one is found again. How to connect one is told in ``docs/providers/waha.md``.
"""

from __future__ import annotations

from paceline.providers.waha.provider import WahaProvider
from paceline.providers.waha.settings import WahaSettings, read_settings

__all__ = ["WahaProvider", "WahaSettings", "read_settings"]
