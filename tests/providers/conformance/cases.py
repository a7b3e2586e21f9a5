"""Every driver there is, as a case of the one suite. A new driver is added here."""

from __future__ import annotations

from tests.providers.conformance import (
    gmail,
    sandbox,
    smtp,
    unipile,
    waha,
    wassenger,
    wati,
    whatsapp,
    whatsapp_cloud,
)
from tests.providers.conformance.case import Case

CASES: list[Case] = [*sandbox.CASES, *unipile.CASES, *wassenger.CASES, *whatsapp.CASES]
CASES += whatsapp_cloud.CASES
CASES += waha.CASES
CASES += smtp.CASES
CASES += gmail.CASES
CASES += wati.CASES
