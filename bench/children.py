"""Processes of their own: each measurement begins with a fresh interpreter, and none is left over.

A child prints one JSON object and ends. What it says on stderr is shown only when it fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from bench.report import BenchError

ROOT = Path(__file__).resolve().parents[1]
END_WITHIN_S = 10
SAID_AT_MOST = 3_000


class Child:
    """One program under way; leaving the block ends it, whatever happened."""

    def __init__(
        self,
        program: Sequence[str],
        *,
        environ: Mapping[str, str] | None = None,
        talks: bool = False,
    ) -> None:
        self._program = list(program)
        self._talks = talks
        self._environ = {**os.environ, **(environ or {})}
        self._said: IO[bytes]
        self._process: subprocess.Popen[bytes]

    def __enter__(self) -> Child:
        # A file rather than a pipe: nobody reads while the child works, and a full pipe stops it.
        self._said = tempfile.TemporaryFile()
        try:
            self._process = subprocess.Popen(  # noqa: S603  (our own programs)
                self._program,
                cwd=ROOT,
                env=self._environ,
                stdin=subprocess.PIPE if self._talks else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._said,
            )
        except OSError as error:
            self._said.close()
            raise BenchError(f"{self._program[0]} cannot be run: {error.strerror}") from None
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(END_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._said.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def hear(self) -> dict[str, Any]:
        """The next object that it prints while it goes on."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise BenchError(self._failed("ended early"))
        heard: dict[str, Any] = json.loads(line)
        return heard

    def output(self, within_s: float) -> str:
        """All that it printed, once it has ended well."""
        try:
            printed, _ = self._process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            raise BenchError(self._failed(f"did not end within {within_s:g} s")) from None
        if self._process.returncode:
            raise BenchError(self._failed(f"ended with {self._process.returncode}"))
        return printed.decode()

    def _failed(self, how: str) -> str:
        self._said.seek(0)
        said = self._said.read().decode(errors="replace").strip()[-SAID_AT_MOST:]
        return f"{' '.join(self._program[:3])} {how}" + (f":\n{said}" if said else "")


def module(
    name: str, *arguments: object, python: str | Path = sys.executable, talks: bool = False
) -> Child:
    """A module of this package as a program, by default with our own interpreter. One that talks
    goes on until its input ends."""
    return Child([str(python), "-m", f"bench.{name}", *map(str, arguments)], talks=talks)


def measure(child: Child, within_s: float) -> dict[str, Any]:
    """Run a child to its end; the object it printed."""
    with child as running:
        printed = running.output(within_s)
    answer: dict[str, Any] = json.loads(printed)
    return answer
