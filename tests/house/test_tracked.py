"""What no tracked file holds: the address of a package registry, a path of one machine, a builders' paper.

Lock files with hashes but without hosts install from any mirror; a path of one machine works on no other.
"""

import re
from pathlib import Path

import pytest

from tests.house.tree import ROOT, built, tracked

HOSTS = ("pypi.org", "pythonhosted.org", "npmjs.org", "npmjs.com", "yarnpkg.com", "debian.org", "crates.io")
HERE = re.compile(r"/(?:root|home/\w+|Users/\w+|work/\w+)/")
PAPERS = re.compile(r"\b(?:SPEC|DESIGN|CASES|PROOF|ECOSYSTEM|RIVALS)\.md\b")


def foreign(text: str) -> list[str]:
    lowered = text.lower()
    here = str(ROOT) if len(ROOT.parts) > 2 else "\0"
    hosts = [host for host in HOSTS if host in lowered]
    return hosts + HERE.findall(text) + PAPERS.findall(text) + ([here] if here in text else [])


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def test_no_file_names_a_registry_a_machine_or_a_builders_paper():
    files = [path for path in tracked() if path != Path(__file__)]
    assert len(files) > (50 if built("store/sqlite.py") else 5)
    found = {path.relative_to(ROOT).as_posix(): foreign(text_of(path)) for path in files}
    assert {name: what for name, what in found.items() if what} == {}


@pytest.mark.parametrize(
    "text",
    [
        f"--index-url https://{HOSTS[0]}/simple",
        f'"resolved": "https://registry.{HOSTS[2]}/x"',
        f"see {ROOT}/src",
        "/".join(["", "home", "ann", "tarry"]),
        "as SPEC" + ".md says",
    ],
)
def test_the_rule_sees(text: str):
    assert foreign(text)


def test_ordinary_paths_are_allowed():
    assert foreign("cd /tmp/shop && cat src/tarry/app.py /etc/hosts README.md") == []
