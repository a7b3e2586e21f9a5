"""Addresses both ways, and what can be no address."""

import pytest

from paceline.providers.whatsapp.addresses import address_of, is_group, is_person, jid_of


@pytest.mark.parametrize(
    ("target", "jid"),
    [
        ("+4915112345678", "4915112345678@s.whatsapp.net"),
        (" 4915112345678 ", "4915112345678@s.whatsapp.net"),
        ("4915112345678@s.whatsapp.net", "4915112345678@s.whatsapp.net"),
        ("4915112345678:12@s.whatsapp.net", "4915112345678@s.whatsapp.net"),
        ("4915112345678@c.us", "4915112345678@s.whatsapp.net"),
        ("120363000000000001@G.US", "120363000000000001@g.us"),
        ("4915112345678-1512345678@g.us", "4915112345678-1512345678@g.us"),
        ("98765432101234@lid", "98765432101234@lid"),
    ],
)
def test_targets_as_whatsapp_knows_them(target: str, jid: str) -> None:
    assert jid_of(target) == jid


@pytest.mark.parametrize(
    "target",
    [
        "", "anna", "anna@example.com", "+0151", "0049151", "+12", "status@broadcast",
        "1234567890@newsletter", "123-456@s.whatsapp.net", "+49 151 123", "1234567@evil.g.us.net",
    ],
)  # fmt: skip
def test_what_is_no_target(target: str) -> None:
    assert jid_of(target) is None


@pytest.mark.parametrize(
    ("jid", "address"),
    [
        ("4915112345678@s.whatsapp.net", "+4915112345678"),
        ("4915112345678:3@s.whatsapp.net", "+4915112345678"),
        ("98765432101234@lid", "98765432101234@lid"),
        ("120363000000000001@g.us", "120363000000000001@g.us"),
    ],
)
def test_the_way_back(jid: str, address: str) -> None:
    assert address_of(jid) == address
    assert jid_of(address) is not None


def test_groups_and_people() -> None:
    assert is_group("120363000000000001@g.us") and not is_group("4915112345678@s.whatsapp.net")
    assert is_person("4915112345678@s.whatsapp.net") and not is_person("98765432101234@lid")
