"""Secrets, unreadable where they are stored: sealed with a key that is not in the database.

Each is sealed with AES-256-GCM under a nonce of its own, bound to what it is about, so that it can
neither be changed nor moved to another account unnoticed. What is stored names its key by a short
hash, so a wrong key is told as such, and while keys are being replaced both kinds can be read.

Keys are 32 random bytes in base64, one a line or separated by commas; the first seals, and all of
them open. They come from the variable ``PACELINE_KEY`` or from a file that nobody else may read.
"""

from __future__ import annotations

import binascii
import os
import secrets
import stat
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.core.errors import InputError, VaultError
from paceline.engine.ports.sealing import SEALED

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VARIABLE = "PACELINE_KEY"
KEY_BYTES = 32
HOW = "Make one with: paceline key new"
_NONCE_BYTES = 12
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def new_key() -> str:
    return b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def name_of(key: bytes) -> str:
    """What a key is called where it is named: enough to tell keys apart, nothing to guess by."""
    return sha256(b"paceline key name\0" + key).hexdigest()[:8]


def read_keys(text: str, where: str) -> list[bytes]:
    """The keys in a text, the first one first; ``InputError`` without repeating any of it."""
    found = []
    for word in text.replace(",", "\n").split():
        try:
            key = b64decode(word, validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if len(key) != KEY_BYTES:
            raise InputError("holds something that is no key", where=where, hint=HOW)
        found.append(key)
    if not found:
        raise InputError("holds no key", where=where, hint=HOW)
    return found


class KeyFile:
    """A file with keys that only its owner may read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[bytes]:
        """The keys; none if there is no such file."""
        try:
            mode, text = self.path.stat().st_mode, self.path.read_text("ascii", "replace")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=str(self.path)) from None
        if os.name == "posix" and mode & _OTHERS:
            raise InputError(
                "can be read by others than its owner",
                where=str(self.path),
                hint=f"Run: chmod 600 {self.path}",
            )
        return read_keys(text, str(self.path))

    def write(self, keys: Sequence[bytes]) -> None:
        """In one go: whoever reads meanwhile finds all of the old or all of the new."""
        with self._beside(keys) as beside:
            os.replace(beside, self.path)

    def create(self) -> list[bytes]:
        """A file with one new key, or what somebody else has put there just before us."""
        key = secrets.token_bytes(KEY_BYTES)
        try:
            with self._beside([key]) as beside:
                # A link, because unlike a renamed file it never takes the place of another.
                os.link(beside, self.path)
        except FileExistsError:
            return self.read()
        return [key]

    @contextmanager
    def _beside(self, keys: Sequence[bytes]) -> Iterator[Path]:
        """The keys in a file of their own, whole, to be put in its place; then it is gone."""
        text = "".join(f"{b64encode(key).decode()}\n" for key in keys)
        beside = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        try:
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            yield beside
        except FileExistsError:
            raise
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", where=str(self.path)) from None
        finally:
            beside.unlink(missing_ok=True)


class KeyVault:
    """A vault whose key is looked for when it is first needed, and again when another one is."""

    def __init__(
        self, file: KeyFile | None, environment: Mapping[str, str], *, may_create: bool = False
    ) -> None:
        self._file = file
        self._environment = environment
        self.may_create = may_create
        self._keys: list[bytes] = []

    @property
    def place(self) -> str:
        """Where its keys come from."""
        if self._environment.get(VARIABLE, "").strip() or self._file is None:
            return VARIABLE
        return str(self._file.path)

    @property
    def _rotating(self) -> KeyFile | None:
        """The file, if the keys are ours to replace."""
        return None if self.place == VARIABLE else self._file

    def begin_rotation(self) -> bool:
        """Put a new key before those there are; whether there were others."""
        file, older = self._rotating, self.ring()
        if file is None:
            return len(older) > 1
        self._keys = [secrets.token_bytes(KEY_BYTES), *older]
        file.write(self._keys)
        return bool(older)

    def end_rotation(self) -> None:
        """Nothing is sealed with the older keys any more: keep none but the first."""
        file = self._rotating
        if file is not None:
            self._keys = self._keys[:1]
            file.write(self._keys)

    def ring(self) -> list[bytes]:
        """Every key there is, the one that seals first; none if nobody has given any."""
        if not self._keys:
            self._keys = self._look()
        return self._keys

    def _look(self) -> list[bytes]:
        given = self._environment.get(VARIABLE, "").strip()
        if given:
            return read_keys(given, VARIABLE)
        return self._file.read() if self._file is not None else []

    def _sealing_key(self) -> bytes:
        keys = self.ring()
        if not keys and self.may_create and self._file is not None:
            keys = self._keys = self._file.create()
        if not keys:
            raise InputError(
                "there is no key to seal secrets with",
                hint=f"Make one with: paceline key new. Give it to every process as {VARIABLE} "
                "or in a file: key_file in paceline.toml",
            )
        return keys[0]

    def seal(self, text: str, about: str) -> str:
        key, nonce = self._sealing_key(), secrets.token_bytes(_NONCE_BYTES)
        content = _cipher(key).encrypt(nonce, text.encode(), about.encode())
        return f"{SEALED}{name_of(key)}:{urlsafe_b64encode(nonce + content).decode()}"

    def unseal(self, sealed: str, about: str) -> str:
        name, _, content = sealed.removeprefix(SEALED).partition(":")
        key = self._key_named(name)
        try:
            raw = urlsafe_b64decode(content)
            text = _cipher(key).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], about.encode())
        except Exception:
            # Whatever it was, it says nothing but that this is not what was sealed.
            raise VaultError(f"{about} was changed after it was sealed") from None
        return text.decode()

    def is_current(self, sealed: str) -> bool:
        keys = self.ring()
        return bool(keys) and sealed.startswith(f"{SEALED}{name_of(keys[0])}:")

    def _key_named(self, name: str) -> bytes:
        # Looked for once more, because somebody may have replaced the keys since they were read.
        for look in (self.ring, self._look):
            keys = self._found(look)
            for key in keys:
                if name_of(key) == name:
                    self._keys = keys
                    return key
        raise VaultError(
            f"the key {name} that secrets were sealed with is not here; bring it back: "
            f"{VARIABLE} or key_file may hold several"
        )

    def _found(self, look: Callable[[], list[bytes]]) -> list[bytes]:
        try:
            return look()
        except InputError as error:
            raise VaultError(str(error)) from None


def _cipher(key: bytes) -> AESGCM:
    # Loaded with the first secret: most commands meet none.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)
