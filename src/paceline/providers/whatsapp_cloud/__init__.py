"""WhatsApp Cloud API: WhatsApp's own interface for businesses, people only, by way of Meta.

A number is registered with Meta; here it has its id and a token (``settings.py``). What a message
looks like on the wire is in ``wire.py``, a file that was uploaded in ``handles.py``, what the
answers mean in ``errors.py`` and ``status.py``, both as tables; what Meta reports by itself is read
in ``webhooks.py``. Whoever has not written in the last 24 hours can be sent nothing but a template
that Meta has approved, and there are no groups: both are capabilities, so that a campaign that asks
for more is refused before it starts. How to connect one is told in
``docs/providers/whatsapp-cloud.md``.
"""

from __future__ import annotations

from paceline.providers.whatsapp_cloud.provider import WhatsAppCloudProvider
from paceline.providers.whatsapp_cloud.settings import WhatsAppCloudSettings, read_settings

__all__ = ["WhatsAppCloudProvider", "WhatsAppCloudSettings", "read_settings"]
