"""The project's files as the house rules see them: where they are, and each Python file as a syntax tree."""

import ast
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SRC = ROOT / "src"
TESTS = ROOT / "tests"


@dataclass(frozen=True)
class Source:
    """One Python file. Rules take it whole, so that each can be shown a bad sample made of a string."""

    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.name)

    @property
    def module(self) -> str:
        return self.name.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @cached_property
    def aliases(self) -> dict[str, str]:
        """What each imported name stands for: `import time as t` gives t: time."""
        found: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found |= {
                    a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0] for a in node.names
                }
            elif isinstance(node, ast.ImportFrom) and node.module:
                found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        return found

    def dotted(self, node: ast.AST) -> str:
        """The full name that an expression like `t.monotonic` reads, imports resolved; else empty."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.dotted(node.value)
            return f"{owner}.{node.attr}" if owner else ""
        return ""

    def imports(self) -> Iterator[tuple[int, str]]:
        """Line and full module name of each import, those inside functions and for types too."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield node.lineno, node.module or "." * node.level


@cache
def sources(folder: str) -> tuple[Source, ...]:
    """The Python files under a folder of the project."""
    paths = sorted((ROOT / folder).rglob("*.py"))
    return tuple(Source(path.relative_to(ROOT).as_posix(), path.read_text("utf-8")) for path in paths)


def built(name: str) -> bool:
    """Whether a part of the package is there: what a rule is about may not be written yet."""
    return (SRC / "tarry" / name).exists()


@cache
def tracked() -> tuple[Path, ...]:
    """The files under version control, and those about to be; outside a clone, the files that are there."""
    if shutil.which("git") and (ROOT / ".git").exists():
        ask = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(ask, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        paths = [ROOT / name for name in listed.split("\0") if name]
    else:
        paths = [path for top in ("src", "tests", "docs") for path in (ROOT / top).rglob("*")]
    return tuple(path for path in paths if path.is_file() and "__pycache__" not in path.parts)
