"""Which drivers there are. Each is loaded when an account of it is first met: most installations
have one or two, and most commands ask for none.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from paceline.engine.ports import Clock, Provider
from paceline.engine.ports.sealing import Vault
from paceline.providers.registry import Registry

if TYPE_CHECKING:
    from paceline.providers.sandbox import Effects


def every_driver(
    clock: Clock, effects: Effects | None, whatsapp_folder: Path, vault: Vault | None = None
) -> Registry:
    """All of them; without ``effects`` the sandbox keeps to itself what it does."""

    def sandbox() -> Provider:
        from paceline.providers.sandbox import MemoryEffects, SandboxProvider

        return SandboxProvider(clock, MemoryEffects() if effects is None else effects)

    def gmail() -> Provider:
        from paceline.providers.gmail import GmailProvider

        return GmailProvider(clock)

    def smtp() -> Provider:
        from paceline.providers.smtp import SmtpProvider

        return SmtpProvider(clock)

    def unipile() -> Provider:
        from paceline.providers.unipile import UnipileProvider

        return UnipileProvider(clock)

    def waha() -> Provider:
        from paceline.providers.waha import WahaProvider

        return WahaProvider(clock)

    def wassenger() -> Provider:
        from paceline.providers.wassenger import WassengerProvider

        return WassengerProvider(clock)

    def wati() -> Provider:
        from paceline.providers.wati import WatiProvider

        return WatiProvider(clock)

    def whatsapp() -> Provider:
        from paceline.providers.whatsapp.provider import WhatsAppProvider

        return WhatsAppProvider(clock, whatsapp_folder)

    def whatsapp_cloud() -> Provider:
        from paceline.providers.whatsapp_cloud import WhatsAppCloudProvider

        return WhatsAppCloudProvider(clock)

    makers = (gmail, sandbox, smtp, unipile, waha, wassenger, wati, whatsapp, whatsapp_cloud)
    return Registry(late={make.__name__: make for make in makers}, vault=vault)
