"""The house rules that a program can check, each a function from a source to its problems.

A rule gets a `Source` and returns one line per problem, empty when all is well. Which files a
rule is applied to, and the proof that it bites, is in `test_house_rules`.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 70

CLOCK_HOMES = ("engine/clock.py", "sim/")
SQL_HOMES = ("store/",)
SQL_PACKAGES = frozenset({"aiosqlite", "alembic", "asyncpg", "psycopg", "sqlalchemy", "sqlite3"})
WORDS_TO_AVOID = frozenset({"job", "task", "item", "manager", "helper", "util"})

READS_THE_CLOCK = frozenset(
    {
        "asyncio.sleep",
        "datetime.date.today",
        "datetime.datetime.now",
        "datetime.datetime.today",
        "datetime.datetime.utcnow",
    }
)
SKIPS = frozenset(
    {
        "pytest.importorskip",
        "pytest.mark.skip",
        "pytest.mark.skipif",
        "pytest.mark.xfail",
        "pytest.skip",
        "pytest.xfail",
        "unittest.SkipTest",
        "unittest.skip",
        "unittest.skipIf",
        "unittest.skipUnless",
    }
)

# Written in two pieces, so that this file does not break its own rule.
UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
OWN_MACHINE = re.compile(r"(?<![\w.~$}*])/(?:work|root|home|Users)/\w")
STATEMENT = re.compile(
    r"\bSELECT\b.+\bFROM\b|\bINSERT\s+(?:OR\s+\w+\s+)?INTO\b|\bUPDATE\s+\w+\s+SET\b"
    r"|\bDELETE\s+FROM\b|\b(?:CREATE|ALTER|DROP)\s+(?:UNIQUE\s+)?(?:TABLE|INDEX)\b",
    re.DOTALL,
)
ELSEWHERE = re.compile(
    r"""\bsrc\s*=\s*["']?(?:https?:)?//|<link\b[^>]*\bhref\s*=\s*["']?(?:https?:)?//"""
    r"""|\bimport\b[^;\n]*["'](?:https?:)?//|@import|\burl\(\s*["']?(?:https?:)?//""",
    re.IGNORECASE,
)
LOCK_LINE = re.compile(
    r"(?P<requirement>[a-z0-9][a-z0-9._-]*(?:\[[a-z0-9,_-]+\])?==[^\s;]+(?: ; [^\\]+)?) \\"
    r"|    --hash=sha256:[0-9a-f]{64}(?: \\)?"
)


@dataclass(frozen=True)
class Source:
    """One file: where it lies below its root, and what it says."""

    path: PurePosixPath
    text: str

    @classmethod
    def read(cls, root: Path, path: Path) -> "Source":
        return cls(PurePosixPath(path.relative_to(root).as_posix()), path.read_text("utf-8"))

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def names(self) -> dict[str, str]:
        """What each imported name stands for: `dt` for `datetime.datetime`, and so on."""
        meanings: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.split(".")[0]
                    meanings[alias.asname or first] = alias.name if alias.asname else first
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    meanings[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        return meanings

    def lives_in(self, homes: tuple[str, ...]) -> bool:
        return str(self.path).startswith(homes)

    def at(self, line: int, problem: str) -> str:
        return f"{self.path}:{line}: {problem}"


Rule = Callable[[Source], list[str]]


def short_file(source: Source) -> list[str]:
    lines = len(source.text.splitlines())
    if lines < MAX_FILE_LINES:
        return []
    return [source.at(lines, f"{lines} lines; a file has fewer than {MAX_FILE_LINES}")]


def short_functions(source: Source) -> list[str]:
    problems = []
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines >= MAX_FUNCTION_LINES:
                problem = f"{node.name} has {lines} lines; a function has fewer than"
                problems.append(source.at(node.lineno, f"{problem} {MAX_FUNCTION_LINES}"))
    return problems


def module_docstring(source: Source) -> list[str]:
    if (ast.get_docstring(source.tree) or "").strip():
        return []
    return [source.at(1, "the module does not say what lives in it")]


def time_and_chance(source: Source) -> list[str]:
    """Time and chance are passed in; only the clock and the simulator may make them."""
    if source.lives_in(CLOCK_HOMES):
        return []
    return [
        source.at(line, f"{name} is called here; time and chance are passed in")
        for line, name in _meanings(source)
        if name in READS_THE_CLOCK or name.startswith("time.") or _is_shared_chance(name)
    ]


def sql_in_the_store(source: Source) -> list[str]:
    if source.lives_in(SQL_HOMES):
        return []
    problems = [
        source.at(line, f"{package} is imported here; databases are the store's affair")
        for line, package in _imported_packages(source)
        if package in SQL_PACKAGES
    ]
    problems += [
        source.at(line, "an SQL statement outside the store")
        for line, text in _strings(source)
        if STATEMENT.search(text)
    ]
    return problems


def words_of_the_house(source: Source) -> list[str]:
    named = [(1, part) for part in source.path.with_suffix("").parts]
    named += [(n.lineno, n.name) for n in source.nodes if isinstance(n, ast.ClassDef)]
    return [
        source.at(line, f"{name}: say what it is, not '{word}'")
        for line, name in named
        for word in _words(name)
        if word.removesuffix("s") in WORDS_TO_AVOID
    ]


def nothing_unfinished(source: Source) -> list[str]:
    return _matching_lines(source, UNFINISHED, "unfinished work is finished or not begun")


def no_own_machine(source: Source) -> list[str]:
    return _matching_lines(source, OWN_MACHINE, "a path that exists on one machine only")


def nothing_from_elsewhere(source: Source) -> list[str]:
    return _matching_lines(source, ELSEWHERE, "the console loads nothing from elsewhere")


def no_skips_and_no_sleeps(source: Source) -> list[str]:
    return [
        source.at(line, f"{name}: tests run, and wait on signals")
        for line, name in _meanings(source)
        if name in SKIPS or name == "time.sleep"
    ]


def only_hashes(source: Source) -> list[str]:
    """A lock file holds names, versions, markers and hashes, and nothing about where from."""
    problems = []
    hashes = 1
    for number, line in enumerate(source.text.splitlines(), start=1):
        match = LOCK_LINE.fullmatch(line)
        if match is None:
            problems.append(source.at(number, f"neither a version nor a hash: {line}"))
        elif match["requirement"]:
            if not hashes:
                problems.append(source.at(number - 1, "a version without a hash"))
            hashes = 0
        else:
            hashes += 1
    if not hashes or not source.text.strip():
        problems.append(source.at(1, "the last version has no hash, or there is none at all"))
    return problems


SOURCE_RULES: tuple[Rule, ...] = (
    short_file,
    short_functions,
    module_docstring,
    time_and_chance,
    sql_in_the_store,
    words_of_the_house,
)
TEST_RULES: tuple[Rule, ...] = (short_file, module_docstring, no_skips_and_no_sleeps)
TEXT_RULES: tuple[Rule, ...] = (nothing_unfinished, no_own_machine)


def _meanings(source: Source) -> Iterator[tuple[int, str]]:
    """Every use of something imported, written out: `t.monotonic` is `time.monotonic`."""
    for node in source.nodes:
        if isinstance(node, ast.Name | ast.Attribute):
            name = _dotted(node)
            if name is not None:
                first, _, rest = name.partition(".")
                if first in source.names:
                    yield node.lineno, ".".join(filter(None, (source.names[first], rest)))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # Imported is as good as used, and a star import names nothing that could be followed.
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def _dotted(node: ast.expr) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join(reversed([*parts, node.id]))


def _is_shared_chance(name: str) -> bool:
    """Say whether this draws from the generator that all of Python shares."""
    return name.startswith("random.") and name.split(".")[1] != "Random"


def _imported_packages(source: Source) -> Iterator[tuple[int, str]]:
    for node in source.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module.split(".")[0]


def _strings(source: Source) -> Iterator[tuple[int, str]]:
    """Every string that is not a docstring; a formatted one with its blanks left out."""
    prose = {
        id(node.value)
        for node in source.nodes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in prose:
                yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            pieces = [piece.value for piece in node.values if isinstance(piece, ast.Constant)]
            yield node.lineno, " _ ".join(map(str, pieces))


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)]


def _matching_lines(source: Source, pattern: re.Pattern[str], problem: str) -> list[str]:
    return [
        source.at(number, f"{problem}: {line.strip()}")
        for number, line in enumerate(source.text.splitlines(), start=1)
        if pattern.search(line)
    ]
