"""What src never holds: code made from data, formats that run code, names that say nothing.

A row on file can never choose a class or run a line (rule 13): nothing that could is there to be called.
Importing by name is for the command line alone, whose MODULE:app is given by the person at the keyboard.
"""

import ast
from collections.abc import Iterator
from pathlib import PurePath

import pytest

from tests.house.tree import Source, sources

MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "yaml", "ruamel", "jsonpickle"}
CALLS = {"eval", "exec", "compile", "__import__", "builtins.eval", "builtins.exec", "builtins.compile"}
BY_NAME = {"importlib.import_module", "importlib.__import__", "pkgutil.resolve_name", "runpy.run_module"}
BY_NAME_MAY = "src/tarry/edge/cli/"
HOLLOW = {"utils", "util", "helpers", "helper", "manager", "managers", "base", "common", "misc", "tools"}


def code_from_data(source: Source) -> Iterator[str]:
    for line, module in source.imports():
        if module.split(".")[0] in MODULES:
            yield f"{source.name}:{line}: import {module}"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            name = source.dotted(node.func)
            if name in CALLS or (name in BY_NAME and not source.name.startswith(BY_NAME_MAY)):
                yield f"{source.name}:{node.lineno}: {name}"


def hollow(name: str) -> bool:
    return any(part.removesuffix(".py").strip("_") in HOLLOW for part in PurePath(name).parts)


def test_nothing_turns_data_into_code():
    found = sources("src")
    assert found
    assert [line for source in found for line in code_from_data(source)] == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "def f():\n    from marshal import loads",
        "import yaml as y",
        "eval('1')",
        "import builtins\nbuiltins.exec('')",
        "from importlib import import_module\nimport_module('a')",
    ],
)
def test_the_rule_sees(text: str):
    assert [*code_from_data(Source("src/tarry/store/a.py", text))]


def test_a_compiled_pattern_is_allowed():
    assert [*code_from_data(Source("a.py", "import re\nre.compile('')"))] == []


def test_module_names_say_something():
    names = [source.name for folder in ("src", "tests", "bench") for source in sources(folder)]
    assert names
    assert [name for name in names if hollow(name)] == []


@pytest.mark.parametrize("name", ["src/tarry/utils.py", "src/tarry/core/common/__init__.py", "src/tarry/_base.py"])
def test_the_rule_sees_hollow_names(name: str):
    assert hollow(name)


def test_a_name_that_contains_a_hollow_word_is_allowed():
    assert not hollow("src/tarry/database.py")
