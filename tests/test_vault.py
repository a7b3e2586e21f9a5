"""Secrets at rest: sealed with a key that is elsewhere, bound to their account, and replaceable."""

import base64
import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.errors import InputError, VaultError
from paceline.vault import KeyFile, KeyVault, name_of, read_keys

ONE = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
TWO = "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="


def vault(*keys: str) -> KeyVault:
    return KeyVault(None, {"PACELINE_KEY": ",".join(keys)})


@given(st.text(), st.text(max_size=50))
def test_what_is_sealed_opens_again_and_shows_nothing(text: str, about: str) -> None:
    sealed = vault(ONE).seal(text, about)
    assert sealed.startswith("sealed:") and sealed.isascii()
    assert len(text) < 6 or text not in sealed
    assert vault(ONE).unseal(sealed, about) == text


def test_the_same_secret_looks_different_every_time() -> None:
    assert vault(ONE).seal("secret", "a") != vault(ONE).seal("secret", "a")


def test_a_secret_cannot_be_given_to_another_account() -> None:
    sealed = vault(ONE).seal("secret", "ann: api_key")
    with pytest.raises(VaultError, match="ben: api_key was changed after it was sealed"):
        vault(ONE).unseal(sealed, "ben: api_key")


@given(st.data())
def test_whatever_is_changed_in_it_is_noticed(data: st.DataObject) -> None:
    sealed = vault(ONE).seal("a secret of some length", "a")
    head, _, content = sealed.rpartition(":")
    raw = bytearray(base64.urlsafe_b64decode(content))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(VaultError):
        vault(ONE).unseal(f"{head}:{base64.urlsafe_b64encode(bytes(raw)).decode()}", "a")


@pytest.mark.parametrize("broken", ["", "x", "sealed:", "sealed:::", "AAAA", "é"])
def test_what_is_cut_short_is_noticed(broken: str) -> None:
    with pytest.raises(VaultError):
        vault(ONE).unseal(f"sealed:{name_of(read_keys(ONE, '')[0])}:{broken}", "a")


def test_a_key_that_is_not_here_is_named() -> None:
    sealed = vault(ONE).seal("secret", "a")
    name = name_of(base64.b64decode(ONE))
    with pytest.raises(VaultError, match=f"the key {name} that secrets were sealed with is not"):
        vault(TWO).unseal(sealed, "a")
    with pytest.raises(VaultError, match="is not here"):
        KeyVault(None, {}).unseal(sealed, "a")


def test_the_first_key_seals_and_all_of_them_open() -> None:
    old = vault(ONE).seal("secret", "a")
    both = vault(TWO, ONE)
    assert both.unseal(old, "a") == "secret"
    fresh = both.seal("secret", "a")
    assert vault(TWO).unseal(fresh, "a") == "secret"
    assert both.is_current(fresh) and not both.is_current(old)


@pytest.mark.parametrize("text", ["", " , ", "short", "x" * 44, ONE[:-4], ONE + "AAAA", "ä" * 44])
def test_what_is_no_key_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InputError, match=r"PACELINE_KEY: holds .* Make one with: paceline key new"):
        read_keys(text, "PACELINE_KEY")
    try:
        read_keys(f"{ONE},{text}x", "PACELINE_KEY")
    except InputError as error:
        assert len(text) < 5 or text not in str(error)


# ---------------------------------------------------------------------- files


def test_a_file_is_made_when_it_is_needed_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "paceline.key"
    made = KeyVault(KeyFile(path), {}, may_create=True)
    assert made.ring() == [] and not path.exists(), "to look makes nothing"
    sealed = made.seal("secret", "a")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert KeyVault(KeyFile(path), {}).unseal(sealed, "a") == "secret"


def test_without_a_key_nothing_is_stored_readable(tmp_path: Path) -> None:
    for none in (KeyVault(None, {}), KeyVault(KeyFile(tmp_path / "none"), {})):
        with pytest.raises(InputError, match="there is no key to seal secrets with"):
            none.seal("secret", "a")


def test_the_variable_comes_before_the_file(tmp_path: Path) -> None:
    path = tmp_path / "paceline.key"
    KeyFile(path).create()
    chosen = KeyVault(KeyFile(path), {"PACELINE_KEY": ONE})
    assert (chosen.place, chosen.ring()) == ("PACELINE_KEY", read_keys(ONE, ""))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "paceline.key"
    KeyFile(path).create()
    path.chmod(mode)
    with pytest.raises(InputError, match=r"can be read by others.* chmod 600"):
        KeyFile(path).read()
    with pytest.raises(VaultError, match="can be read by others"):
        KeyVault(KeyFile(path), {}).unseal("sealed:12345678:AAAA", "a")


def test_two_processes_that_make_a_key_at_once_agree_on_it(tmp_path: Path) -> None:
    path, together, found = tmp_path / "paceline.key", threading.Barrier(8), []

    def make() -> None:
        together.wait()
        sealed = KeyVault(KeyFile(path), {}, may_create=True).seal("secret", "a")
        found.append(sealed)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader = KeyVault(KeyFile(path), {})
    assert [reader.unseal(sealed, "a") for sealed in found] == ["secret"] * 8
    assert os.listdir(tmp_path) == ["paceline.key"]


def test_a_running_process_finds_a_key_that_was_replaced(tmp_path: Path) -> None:
    path = tmp_path / "paceline.key"
    running = KeyVault(KeyFile(path), {}, may_create=True)
    old = running.seal("secret", "a")
    rotating = KeyVault(KeyFile(path), {})
    assert rotating.begin_rotation()
    fresh = rotating.seal(rotating.unseal(old, "a"), "a")
    assert running.unseal(fresh, "a") == "secret", "looked for once more"
    assert running.unseal(old, "a") == "secret", "both are there while it lasts"
    rotating.end_rotation()
    assert KeyFile(path).read() == rotating.ring() and len(rotating.ring()) == 1
    with pytest.raises(VaultError):
        KeyVault(KeyFile(path), {}).unseal(old, "a")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
