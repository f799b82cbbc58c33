"""What a load costs in statements, rows and bytes: figures that no neighbour on the machine can blur.

Every connection that apsw opens in the process is watched, whoever opens it: the code under measure holds no
seam for it. A statement is one execution, a binding of executemany too; bytes are those of text and blobs,
bound and read. Watching slows: a trial is billed or timed, never both.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import apsw


def weight(values: Iterable[Any]) -> int:
    return sum(len(value) for value in values if isinstance(value, str | bytes | bytearray | memoryview))


class Bill:
    """Counts from its making on, for all connections opened after it."""

    def __init__(self) -> None:
        self.sums: list[Counter[str]] = []
        apsw.connection_hooks.append(self.watch)

    def watch(self, connection: apsw.Connection) -> None:
        """Give a connection counters of its own: threads that write side by side lose no count."""
        sums: Counter[str] = Counter()

        def executed(_cursor: apsw.Cursor, sql: str, bound: Any) -> bool:
            sums["statements"] += 1
            sums["commits"] += sql.lstrip()[:6].upper() == "COMMIT"
            sums["bytes bound"] += weight(bound.values() if isinstance(bound, dict) else bound or ())
            return True

        def fetched(_cursor: apsw.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
            sums["rows read"] += 1
            sums["bytes read"] += weight(row)
            return row

        connection.exec_trace, connection.row_trace = executed, fetched
        self.sums.append(sums)

    async def read(self) -> dict[str, int]:
        """The sums over all connections so far."""
        return dict(sum(self.sums, Counter[str]()))
