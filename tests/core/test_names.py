"""Names of messages that nobody can make up."""

import base64
import re
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.names import LONGEST, Named, Names, signed_in, spelled

NAMES = Names(b"k" * 32)
IDS = st.integers(min_value=0, max_value=10**18 - 1)
PARTS = st.integers(min_value=0, max_value=9_999)


@given(IDS, PARTS)
def test_a_name_means_its_own_part_however_it_is_spelled(delivery_id: int, part: int) -> None:
    name = NAMES.of(delivery_id, part)
    assert NAMES.meant_by(name) == NAMES.meant_by(name.upper()) == Named(delivery_id, part)
    assert len(name) <= LONGEST and re.fullmatch(r"[a-z0-9-]+", name)
    assert signed_in(f"<bounces+{name.upper()}@example.com>") == name


@given(IDS, PARTS)
def test_a_proof_is_a_keyed_hash_in_base_32(delivery_id: int, part: int) -> None:
    digest = blake2b(f"name {delivery_id} {part}".encode(), digest_size=10, key=NAMES.key).digest()
    proof = base64.b32encode(digest).decode().lower()
    assert NAMES.of(delivery_id, part) == f"pl{delivery_id}-{part}-{proof}"


@given(st.binary(max_size=60))
def test_bytes_are_spelled_in_base_32(raw: bytes) -> None:
    assert spelled(raw) == base64.b32encode(raw).decode().rstrip("=").lower()


@given(st.text(max_size=60))
def test_whatever_else_is_written_means_nothing(text: str) -> None:
    assert NAMES.meant_by(text) is None


def test_a_name_is_good_for_its_own_part_and_installation_alone() -> None:
    name = NAMES.of(7, 0)
    proof = name.rpartition("-")[2]
    for forged in (f"pl8-0-{proof}", f"pl7-1-{proof}", f"{name}a", f"pl7-0-{proof[:-1]}", "pl7-0-"):
        assert NAMES.meant_by(forged) is None
    assert Names(b"j" * 32).meant_by(name) is None
    assert "kkkk" not in repr(NAMES)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("bounces+", "@example.com"),
        ("<anna+", "@example.com>"),
        ("SRS0=Hx1T=AB=example.com=bounces+", "@forwarder.example"),
        ("bounces=", "=7@example.com"),
    ],
)
def test_a_name_is_found_in_an_address(before: str, after: str) -> None:
    assert signed_in(f"{before}{NAMES.of(7, 0)}{after}") == NAMES.of(7, 0)


@pytest.mark.parametrize(
    "text", ["", "anna@example.com", f"x{NAMES.of(7, 0)}", f"{NAMES.of(7, 0)}x"]
)
def test_what_is_none_is_not_found(text: str) -> None:
    assert signed_in(text) is None


def test_a_seal_is_good_for_its_own_key_alone() -> None:
    seal = NAMES.seal(7, 0)
    assert NAMES.is_sealed(Named(7, 0), seal) and NAMES.is_sealed(Named(7, 0), seal.upper())
    for named, shown in ((Named(8, 0), seal), (Named(7, 1), seal), (Named(7, 0), "")):
        assert not NAMES.is_sealed(named, shown)
    assert not Names(b"j" * 32).is_sealed(Named(7, 0), seal)
    assert not NAMES.is_sealed(Named(7, 0), NAMES.of(7, 0).rpartition("-")[2]), "a name is no seal"
