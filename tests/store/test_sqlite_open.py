"""Opening a file: whose it is, whether it is whole and can be written, and what is promised of it afterwards."""

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from tarry.errors import (
    BadStoreUrl,
    Closed,
    StoreCorrupt,
    StoreError,
    StoreForeign,
    StoreReadOnly,
    StoreTooNew,
)
from tarry.store.opening import open_store
from tarry.store.seal import Zlib
from tarry.store.sqlite import SqliteStore
from tarry.store.sqlite_open import APPLICATION_ID
from tarry.store.statements import migrations, sql_file, statements
from tests.store import town


def opened(path: Path | None) -> SqliteStore:
    return SqliteStore(path, town.Clock(), Zlib())


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_new_file_is_ours_durable_and_private(tmp_path: Path):
    """SPEC 11.7: write-ahead log and synchronous FULL, asked back from SQLite; payloads are for the owner alone."""
    store = opened(tmp_path / "t.db")
    told = store.facts()
    assert (told["journal_mode"], told["synchronous"]) == ("wal", 2)
    assert told["schema_version"] == len(migrations("sqlite"))
    for name in ("t.db", "t.db-wal", "t.db-turn"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    store.close()
    assert not (tmp_path / "t.db-wal").exists()
    raw = apsw.Connection(str(tmp_path / "t.db"))
    assert raw.pragma("application_id") == APPLICATION_ID
    raw.close()


def test_what_was_committed_is_there_when_it_is_opened_again(tmp_path: Path):
    store = opened(tmp_path / "t.db")
    town.commit(store, town.start("a"), town.signal("a", "k1"))
    before = town.everything(store)
    store.close()
    again = opened(tmp_path / "t.db")
    assert town.everything(again) == before
    again.close()


def test_another_programs_database_is_left_as_it_is(tmp_path: Path):
    """Without an application id of its own, and with one."""
    for number, application in enumerate((0, 0x1234)):
        path = tmp_path / f"{number}.db"
        with apsw.Connection(str(path)) as raw:
            raw.pragma("application_id", application)
            raw.execute("create table shop (x)")
        raw.close()
    before = bytes_of(tmp_path)
    for number in (0, 1):
        with pytest.raises(StoreForeign, match=f"{number}.db is a database of another program"):
            opened(tmp_path / f"{number}.db")
    assert bytes_of(tmp_path) == before


def test_a_newer_schema_is_left_as_it_is(tmp_path: Path):
    store = opened(tmp_path / "t.db")
    store.close()
    raw = apsw.Connection(str(tmp_path / "t.db"))
    raw.pragma("user_version", 99)
    raw.close()
    with pytest.raises(StoreTooNew) as refused:
        opened(tmp_path / "t.db")
    assert refused.value.fields == {"found": 99, "known": len(migrations("sqlite"))}


def test_what_is_no_database_is_left_as_it_is(tmp_path: Path):
    (tmp_path / "t.db").write_bytes(b"Dear diary, " * 1000)
    before = bytes_of(tmp_path)
    with pytest.raises(StoreCorrupt, match=r"t\.db is damaged or not a database"):
        opened(tmp_path / "t.db")
    assert bytes_of(tmp_path) == before


def test_an_empty_file_is_a_new_one(tmp_path: Path):
    """A process that died right after making the file leaves one."""
    (tmp_path / "t.db").touch()
    opened(tmp_path / "t.db").close()


def test_a_folder_that_is_not_there_is_said(tmp_path: Path):
    with pytest.raises(StoreReadOnly, match="No such file or directory"):
        opened(tmp_path / "no" / "t.db")
    with pytest.raises(StoreReadOnly):
        opened(tmp_path)


AS_NOBODY = """
import os, sys
from tarry.store.opening import open_store
from tarry.errors import StoreReadOnly
open_store("sqlite://:memory:").close()  # imports all, while the interpreter's own files can be read
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    open_store("sqlite:///" + sys.argv[1])
except StoreReadOnly as error:
    print(error)
"""


@pytest.mark.parametrize("mode", [0o555, 0o755])
def test_a_file_or_folder_that_cannot_be_written_is_said(tmp_path: Path, mode: int):
    opened(tmp_path / "t.db").close()
    (tmp_path / "t.db").chmod(0o444)
    tmp_path.chmod(mode)
    for folder in tmp_path.parents[:2]:
        folder.chmod(0o755)
    ask = [sys.executable, "-c", AS_NOBODY, str(tmp_path / "t.db")]
    told = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
    tmp_path.chmod(0o755)
    assert "cannot be written" in told
    assert "permissions" in told


def test_two_sqlite_libraries_on_one_file_are_refused(tmp_path: Path):
    """Each would drop the other's locks; the standard library's is another one than ours."""
    opened(tmp_path / "t.db").close()
    other = sqlite3.connect(tmp_path / "t.db")
    try:
        with pytest.raises(StoreError, match="two SQLite libraries in one process"):
            opened(tmp_path / "t.db")
    finally:
        other.close()
    store = opened(tmp_path / "t.db")
    elsewhere = sqlite3.connect(tmp_path / "other.db")
    assert store.facts()["other_library"] is False
    elsewhere.close()
    store.close()


def test_a_file_that_was_replaced_takes_no_more_writes(tmp_path: Path):
    """They would go where nobody finds them again."""
    store = opened(tmp_path / "t.db")
    os.rename(tmp_path / "t.db", tmp_path / "old.db")
    with pytest.raises(StoreError, match="moved, replaced or deleted"):
        town.commit(store, town.start("a"))
    (tmp_path / "t.db").touch()
    with pytest.raises(StoreError, match="moved, replaced or deleted"):
        town.commit(store, town.start("a"))
    os.rename(tmp_path / "old.db", tmp_path / "t.db")
    assert town.commit(store, town.start("a"))[0].created
    store.close()


def test_a_closed_store_says_so(tmp_path: Path):
    store = opened(tmp_path / "t.db")
    store.close()
    store.close()
    with pytest.raises(Closed):
        store.begin()
    with pytest.raises(Closed):
        store.run("a")


def test_memory_is_shared_by_a_store_and_by_nobody_else():
    one, two = opened(None), opened(None)
    town.commit(one, town.start("a"))
    assert one.run("a") is not None
    assert two.run("a") is None
    for store in (one, two):
        store.tidy()
        store.close()


def test_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """SPEC 2: sqlite:///relative, sqlite:////absolute, sqlite://:memory:."""
    monkeypatch.chdir(tmp_path)
    for url, made in {
        "sqlite:///a.db": "a.db",
        f"sqlite:///{tmp_path}/b.db": "b.db",
        "sqlite://:memory:": None,
    }.items():
        open_store(url).close()
        assert made is None or (tmp_path / made).exists()
    assert {path.suffix for path in tmp_path.iterdir()} == {".db", ".db-turn"}


@pytest.mark.parametrize(
    "url",
    ["", "shop.db", "sqlite:", "sqlite://", "sqlite:///", "sqlite://shop.db", "sqlite:///x/", "sqlite:///a?mode=ro"],
)
def test_what_names_no_store_is_refused(url: str):
    with pytest.raises(BadStoreUrl):
        open_store(url)


def test_a_password_is_not_repeated():
    with pytest.raises(BadStoreUrl) as refused:
        open_store("postgresql://ann:secret@db/shop")
    assert "secret" not in str(refused.value)
    assert "db/shop" in str(refused.value)


def test_the_schema_is_the_sum_of_its_migrations():
    """What a reader is shown is what every file has, new or old."""

    def made_by(*scripts: str) -> list[tuple[object, ...]]:
        raw = apsw.Connection(":memory:")
        for script in scripts:
            raw.execute(script)
        return raw.execute("select type, name, tbl_name, sql from sqlite_schema order by 1, 2").fetchall()

    assert made_by(sql_file("sqlite", "schema.sql")) == made_by(*migrations("sqlite"))


def test_each_statement_is_one():
    """A second one behind a semicolon would be run without its values."""
    raw = apsw.Connection(":memory:")
    raw.execute(sql_file("sqlite", "schema.sql"))
    for name, text in statements("sqlite").items():
        assert text.endswith(";"), name
        assert text.count(";") == 1, name
