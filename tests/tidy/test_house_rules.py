"""The house rules hold in every file, and each of them would notice if it did not."""

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath

import pytest

from tests.tidy import rules
from tests.tidy.rules import Rule, Source

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "paceline"
LOCKS = ("requirements.txt", "requirements-whatsapp.txt", "requirements-dev.txt")
PAGES = {".css", ".html", ".j2", ".js", ".mjs", ".svg"}
TEXTS = PAGES | {".md", ".py", ".toml", ".ini", ".mako", ".sql", ".txt", ".yml", ".yaml"}


def files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path


@lru_cache(maxsize=1)
def sources(folder: Path) -> list[Source]:
    """Read and parsed once for all rules."""
    return [Source.read(folder, path) for path in files(str(folder)) if path.suffix == ".py"]


@lru_cache(maxsize=1)
def texts() -> list[Source]:
    written = [
        p
        for p in files("src", "tests", "docs", "scripts", ".ci", "examples")
        if p.suffix in TEXTS or p.parent.name in {"scripts", ".ci"}
    ]
    written += [p for p in ROOT.iterdir() if p.is_file() and p.suffix in TEXTS]
    # The rules and their proofs have to name what they forbid.
    return [Source.read(ROOT, path) for path in written if path.parent != Path(__file__).parent]


def problems(rule: Rule, checked: list[Source]) -> str:
    assert checked, "there is nothing to check, so the check means nothing"
    return "\n".join(problem for source in checked for problem in rule(source))


@pytest.mark.parametrize("rule", rules.SOURCE_RULES, ids=lambda rule: rule.__name__)
def test_the_source_keeps_the_rule(rule: Rule) -> None:
    assert not problems(rule, sources(PACKAGE))


@pytest.mark.parametrize("rule", rules.TEST_RULES, ids=lambda rule: rule.__name__)
def test_the_tests_keep_the_rule(rule: Rule) -> None:
    assert not problems(rule, sources(ROOT / "tests"))


@pytest.mark.parametrize("rule", rules.TEXT_RULES, ids=lambda rule: rule.__name__)
def test_every_text_keeps_the_rule(rule: Rule) -> None:
    assert not problems(rule, texts())


def test_pages_load_nothing_from_elsewhere() -> None:
    pages = [Source.read(ROOT, path) for path in files("src") if path.suffix in PAGES]
    python = [Source.read(ROOT, path) for path in files("src") if path.suffix == ".py"]
    assert not problems(rules.nothing_from_elsewhere, pages + python)


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_files_name_no_place(lock: str) -> None:
    assert not problems(rules.only_hashes, [Source.read(ROOT, ROOT / lock)])


BAD = [
    (rules.short_file, "core/a.py", "x = 1\n" * 400),
    (rules.short_functions, "core/a.py", "def f():\n" + "    x = 1\n" * 69),
    (rules.short_functions, "core/a.py", "class A:\n  async def f(self):\n" + "    x = 1\n" * 69),
    (rules.module_docstring, "core/a.py", "x = 1\n"),
    (rules.module_docstring, "core/a.py", '""" """\n'),
    (rules.time_and_chance, "core/a.py", "import datetime\ndatetime.datetime.now()\n"),
    (rules.time_and_chance, "core/a.py", "from datetime import datetime as dt\ndt.utcnow()\n"),
    (rules.time_and_chance, "core/a.py", "import datetime as d\nd.date.today()\n"),
    (rules.time_and_chance, "engine/lane.py", "import time\ntime.monotonic()\n"),
    (rules.time_and_chance, "engine/lane.py", "import time as t\ndef f(now=t.time_ns): ...\n"),
    (rules.time_and_chance, "engine/lane.py", "from time import perf_counter\n"),
    (rules.time_and_chance, "engine/lane.py", "from time import *\n"),
    (rules.time_and_chance, "engine/lane.py", "import asyncio\nawait asyncio.sleep(1)\n"),
    (rules.time_and_chance, "engine/lane.py", "from asyncio import sleep as nap\n"),
    (rules.time_and_chance, "providers/a.py", "import random\nrandom.uniform(1, 2)\n"),
    (rules.time_and_chance, "providers/a.py", "from random import choice\n"),
    (rules.sql_in_the_store, "engine/lane.py", "from sqlalchemy import select\n"),
    (rules.sql_in_the_store, "api/a.py", "import sqlalchemy.engine as e\n"),
    (rules.sql_in_the_store, "api/a.py", 'q = "SELECT a\\nFROM b"\n'),
    (rules.sql_in_the_store, "api/a.py", 'q = f"SELECT {a} FROM b"\n'),
    (rules.sql_in_the_store, "cli/a.py", 'q = "UPDATE runs SET state = 1"\n'),
    (rules.sql_in_the_store, "cli/a.py", 'q = "DELETE FROM runs"\n'),
    (rules.words_of_the_house, "engine/jobs.py", ""),
    (rules.words_of_the_house, "engine/send_task.py", ""),
    (rules.words_of_the_house, "utils/text.py", ""),
    (rules.words_of_the_house, "engine/a.py", "class LaneManager: ...\n"),
    (rules.words_of_the_house, "engine/a.py", "class QueueItem: ...\n"),
    (rules.words_of_the_house, "engine/a.py", "class HTTPHelper: ...\n"),
    (rules.nothing_unfinished, "core/a.py", "# TODO: later\n"),
    (rules.nothing_unfinished, "docs/a.md", "FIXME\n"),
    (rules.nothing_unfinished, "docs/a.md", "XXX what is this\n"),
    (rules.no_own_machine, "docs/a.md", "see /home/someone/notes\n"),
    (rules.no_own_machine, "scripts/a", 'cd "/root/x"\n'),
    (rules.nothing_from_elsewhere, "api/a.html", '<script src="https://cdn.example/x.js">\n'),
    (rules.nothing_from_elsewhere, "api/a.html", '<link rel="x" href="//cdn.example/x.css">\n'),
    (rules.nothing_from_elsewhere, "api/a.js", 'import x from "https://cdn.example/x.js";\n'),
    (rules.nothing_from_elsewhere, "api/a.css", "a { b: url(https://cdn.example/x.png) }\n"),
    (
        rules.no_skips_and_no_sleeps,
        "tests/a.py",
        "import pytest\n@pytest.mark.skip\ndef f(): ...\n",
    ),
    (rules.no_skips_and_no_sleeps, "tests/a.py", "from pytest import importorskip\n"),
    (rules.no_skips_and_no_sleeps, "tests/a.py", "import time\ntime.sleep(1)\n"),
    (rules.only_hashes, "requirements.txt", ""),
    (rules.only_hashes, "requirements.txt", "--index-url https://registry.example/simple\n"),
    (rules.only_hashes, "requirements.txt", "a @ file:///somewhere/a.whl\n"),
    (rules.only_hashes, "requirements.txt", "a==1\n"),
    (rules.only_hashes, "requirements.txt", "a==1 \\\nb==1 \\\n    --hash=sha256:" + "0" * 64),
]

GOOD = [
    (rules.short_file, "core/a.py", "x = 1\n" * 399),
    (rules.short_functions, "core/a.py", "def f():\n" + "    x = 1\n" * 68),
    (rules.time_and_chance, "engine/clock.py", "import time\ntime.time_ns()\n"),
    (rules.time_and_chance, "sim/world.py", "import asyncio\nasyncio.sleep(1)\n"),
    (rules.time_and_chance, "core/a.py", "import random\nr = random.Random(1)\nr.uniform(1, 2)\n"),
    (rules.time_and_chance, "core/a.py", "from datetime import datetime\ndatetime(2024, 1, 1)\n"),
    (rules.time_and_chance, "core/a.py", "from datetime import time\ntime(9, 30)\n"),
    (rules.time_and_chance, "core/a.py", "clock.sleep(1)\nself.time.now()\n"),
    (rules.sql_in_the_store, "store/a.py", 'import sqlalchemy\nq = "SELECT a FROM b"\n'),
    (rules.sql_in_the_store, "core/a.py", 'why = "select an account from the list"\n'),
    (rules.words_of_the_house, "core/itemised.py", "class Jobless: ...\n"),
    (rules.nothing_from_elsewhere, "api/a.html", '<a href="https://example.org">more</a>\n'),
    (rules.nothing_from_elsewhere, "api/a.html", '<script src="/static/console.js">\n'),
    (rules.only_hashes, "requirements.txt", "a==1 ; b == 'c' \\\n    --hash=sha256:" + "0" * 64),
]


@pytest.mark.parametrize(("rule", "path", "text"), BAD)
def test_the_rule_bites(rule: Rule, path: str, text: str) -> None:
    assert rule(Source(PurePosixPath(path), text))


@pytest.mark.parametrize(("rule", "path", "text"), GOOD)
def test_the_rule_lets_through(rule: Rule, path: str, text: str) -> None:
    assert rule(Source(PurePosixPath(path), text)) == []


def test_every_rule_is_proved_to_bite() -> None:
    used = {*rules.SOURCE_RULES, *rules.TEST_RULES, *rules.TEXT_RULES}
    used |= {rules.nothing_from_elsewhere, rules.only_hashes}
    assert used == {rule for rule, _, _ in BAD}


# Import directions are import-linter's; its contracts are in pyproject.toml.


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    call = "from importlinter.cli import lint_imports_command as lint; lint()"
    return subprocess.run(
        [sys.executable, "-c", call, "--no-cache", "--config", str(ROOT / "pyproject.toml")],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_imports_keep_their_directions() -> None:
    linted = lint_imports(ROOT / "src")
    assert linted.returncode == 0, linted.stdout + linted.stderr


def write_package(folder: Path, importer: str, imported: str) -> None:
    """Write an empty Paceline in which one module imports one other."""
    for package in ("core", "engine", "store", "providers", "sim", "api", "cli"):
        (folder / "paceline" / package).mkdir(parents=True)
        (folder / "paceline" / package / "__init__.py").touch()
    (folder / "paceline" / "__init__.py").touch()
    for module in ("engine.ports", "engine.lane", "app", "demo", imported, importer):
        (folder / "paceline" / f"{module.replace('.', '/')}.py").touch()
    path = folder / "paceline" / f"{importer.replace('.', '/')}.py"
    path.write_text(f"import paceline.{imported}\n")


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("core.pacer", "engine.clock"),
        ("engine.lane", "store.schema"),
        ("store.claims", "engine.lane"),
        ("store.claims", "providers.smtp"),
        ("providers.smtp", "engine.journal"),
        ("api.routes", "store.schema"),
        ("api.routes", "providers.smtp"),
        ("sim.world", "api.routes"),
        ("app", "sim.world"),
        ("engine.lane", "app"),
        ("newcomer", "core.pacer"),
    ],
)
def test_a_forbidden_import_is_noticed(tmp_path: Path, importer: str, imported: str) -> None:
    write_package(tmp_path, importer, imported)
    linted = lint_imports(tmp_path)
    assert linted.returncode == 1, linted.stdout + linted.stderr
    assert "BROKEN" in linted.stdout


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("engine.lane", "core.pacer"),
        ("store.claims", "engine.ports"),
        ("providers.smtp", "engine.ports"),
        ("sim.world", "store.schema"),
        ("app", "providers.smtp"),
        ("demo", "sim.world"),
        ("cli.main", "demo"),
    ],
)
def test_a_wanted_import_is_let_through(tmp_path: Path, importer: str, imported: str) -> None:
    write_package(tmp_path, importer, imported)
    linted = lint_imports(tmp_path)
    assert linted.returncode == 0, linted.stdout + linted.stderr
