"""From the columns of somebody's table to people: which column is what, and one row made a person.

Pure. People export their contacts from a hundred programs, each with its own headings; the usual
ones are known, others are named by the operator, and whatever is left is kept for the templates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from paceline.core.address import KINDS, guess_kind, normalise, understood
from paceline.core.errors import InputError
from paceline.core.instants import Instant, parse_instant
from paceline.core.nearest import did_you_mean
from paceline.engine.ports import Address

LONGEST_FIELD = 10_000
"""Characters one column of one person may have."""

ADDRESS, SOURCE, AT = "address", "opt_in_source", "opt_in_at"
MEANT = (*KINDS, ADDRESS, SOURCE, AT)
"""What a column can be besides a field of its own name."""

_USUAL = {
    "email": "email mail emailaddress emailadresse emailadress eemail primaryemail workemail "
    "businessemail personalemail correo correoelectronico courriel email1value",
    "phone": "phone phonenumber mobile mobilephone mobilenumber cell cellphone tel telephone "
    "telefon telefonnummer handy handynummer mobil whatsapp whatsappnumber telefono movil",
    "linkedin": "linkedin linkedinurl linkedinprofile linkedinprofileurl profileurl linkedinid",
    "group": "group groupid whatsappgroup",
    ADDRESS: "address target recipient",
    SOURCE: "optinsource optin consent consentsource",
    AT: "optinat optindate consentat consentdate",
    "name": "name fullname displayname",
    "first_name": "firstname givenname vorname prenom",
    "last_name": "lastname surname familyname nachname",
    "zone": "zone timezone tz zeitzone",
}
_MEANING = {name: kind for kind, names in _USUAL.items() for name in names.split()}


class PersonRow(NamedTuple):
    """One row of a table, understood."""

    line: int
    addresses: tuple[Address, ...]
    fields: Mapping[str, str]
    opt_in_source: str
    opt_in_at: Instant | None
    opt_in_else: str = ""
    """Where they said yes if neither the row nor anybody before has said so."""


class Reject(NamedTuple):
    """A row that was not taken, and why."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Columns:
    """What each column of a table is."""

    meaning: Mapping[str, str]
    """By heading: one of ``MEANT``, or the name of a field."""
    region: str | None = None
    opt_in: str = ""
    """Where these people said yes, if the table does not say so itself."""

    @classmethod
    def of(
        cls,
        header: Sequence[str],
        mapped: Mapping[str, str] | None = None,
        *,
        region: str | None = None,
        opt_in: str = "",
    ) -> Columns:
        """``mapped`` says of a meaning or a field which heading it is under."""
        meaning: dict[str, str] = {}
        for name, heading in (mapped or {}).items():
            if heading not in header:
                known = did_you_mean(heading, list(header)) or f" (there are: {', '.join(header)})"
                raise InputError(f"there is no column '{heading}'{known}", key="--map")
            meaning[heading] = name
        # Of several columns that could be the e-mail address it is the one that is called so, else
        # the first; the others are fields.
        exact = {h for h in header if h not in meaning and variable(h) in _USUAL}
        meaning |= {heading: variable(heading) for heading in exact}
        for heading in header:
            usual = _MEANING.get(_plain(heading), variable(heading))
            taken = usual in meaning.values()
            meaning.setdefault(heading, variable(heading) if taken else usual)
        for name in meaning.values():
            if list(meaning.values()).count(name) > 1:
                several = " and ".join(f"'{h}'" for h in header if meaning[h] == name)
                reason = f"the columns {several} would both be {name}"
                raise InputError(reason, hint="Name one of them another way with --map")
        if not any(name in (*KINDS, ADDRESS) for name in meaning.values()):
            hint = "Say which is what, as in --map email=E-Mail or --map phone=Mobile"
            if any(guess_kind(heading) in ("email", "phone") for heading in header):
                hint = "The first line names the columns, as in: email,name"
            reason = f"no column is an address; there are: {', '.join(header)}"
            raise InputError(reason, hint=hint)
        return cls(meaning, region, opt_in)

    def person(self, line: int, cells: Mapping[str, str]) -> PersonRow:
        """The row as a person; ``InputError`` says what is wrong with it."""
        addresses: dict[str, Address] = {}
        fields: dict[str, str] = {}
        source, opted_in_at = "", None
        for heading, cell in cells.items():
            text, name = cell.strip(), self.meaning[heading]
            if not text:
                continue
            if name in KINDS or name == ADDRESS:
                kind, spelled = self._address(name, text)
                # What two columns say is one address all the same.
                if all(spelled != known.address for known in addresses.values()):
                    addresses.setdefault(kind, Address(kind, spelled))
            elif name == SOURCE:
                source = text
            elif name == AT:
                opted_in_at = parse_instant(text)
            elif len(text) > LONGEST_FIELD:
                raise InputError(f"{heading} has more than {LONGEST_FIELD} characters")
            else:
                fields[name] = text
        if not addresses:
            raise InputError("has no address")
        reached = tuple(addresses.values())
        return PersonRow(line, reached, fields, source, opted_in_at, self.opt_in)

    def _address(self, name: str, text: str) -> tuple[str, str]:
        """What kind of address a cell is, and how it is spelled."""
        if name == ADDRESS:
            return understood(text, self.region)
        return name, normalise(name, text, self.region)


def variable(heading: str) -> str:
    """A heading as a template can name it."""
    name = re.sub(r"\W+", "_", heading.strip()).strip("_")
    return f"_{name}" if not name or name[0].isdigit() else name


def _plain(heading: str) -> str:
    """A heading without what differs from program to program."""
    return re.sub(r"[\W_]+", "", heading.casefold())
