"""The calls that a pass has met and not answered yet, and the names that it has used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tarry.core.inbox import Inbox
from tarry.engine.calls import Call
from tarry.engine.channels import ReceiveCall
from tarry.engine.steps import StepCall
from tarry.errors import NameReused
from tarry.model import EntryId, EntryKind, Wait, WaitId


class InFlight:
    """`waiting` tells which call a wait on file belongs to; `to_open` are calls whose waits are not on file yet."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._calls: dict[Call, None] = {}
        self._used: dict[str, set[EntryId]] = defaultdict(set)
        self._folds: set[str] = set()
        self._rounds: dict[tuple[EntryKind, str, str], int] = defaultdict(int)
        self.waiting: dict[WaitId, Call] = {}
        self.to_open: dict[Call, None] = {}

    def __iter__(self) -> Iterator[Call]:
        return iter(list(self._calls))

    def __contains__(self, call: Call) -> bool:
        return call in self._calls

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, call: Call) -> None:
        self._calls[call] = None

    def remove(self, call: Call) -> None:
        self._calls.pop(call, None)
        self.detach(call)

    def clear(self) -> list[Call]:
        calls, self._calls = list(self._calls), {}
        return calls

    def attach(self, call: Call, on_file: dict[WaitId, Wait]) -> None:
        """The call waits for something that is, or will be, on file: its waits, or the delay before a retry."""
        for wait in call.waits():
            self.waiting[wait] = call
            if wait not in on_file:
                self.to_open[call] = None
        if call.frame.step is not None:
            call.frame.step.nested.add(call)

    def detach(self, call: Call) -> None:
        self.to_open.pop(call, None)
        for wait in call.waits():
            if self.waiting.get(wait) is call:
                del self.waiting[wait]
        if call.frame.step is not None:
            call.frame.step.nested.discard(call)

    # --- who is doing what ---

    def executing(self) -> list[StepCall]:
        return [call for call in self._calls if isinstance(call, StepCall) and call.executing]

    def to_reject(self) -> Call | None:
        """The oldest call that a cancel reaches: nothing is going on for it and nothing is recorded."""
        for call in self._calls:
            recorded = isinstance(call, StepCall) and call.recorded
            if not call.executing and not recorded and not call.future.done():
                return call
        return None

    def receivers(self, inbox: Inbox) -> list[ReceiveCall]:
        """The calls that wait for a channel's next message, oldest first."""
        return [call for call in self._calls if isinstance(call, ReceiveCall) and call.inbox is inbox]

    # --- names: each identifies one thing in a pass (rule 3.3) ---

    def use_name(self, entry_id: EntryId, kind: str) -> None:
        used = self._used[entry_id.scope]
        if entry_id in used:
            raise NameReused(kind=kind, name=entry_id.name, run_id=self._run_id)
        used.add(entry_id)

    def use_fold(self, channel: str) -> None:
        if channel in self._folds:
            raise NameReused(kind="fold", name=channel, run_id=self._run_id)
        self._folds.add(channel)

    def next_round(self, kind: EntryKind, scope: str, name: str) -> int:
        self._rounds[kind, scope, name] += 1
        return self._rounds[kind, scope, name] - 1

    def forget_scope(self, prefix: str) -> None:
        """The rounds of a fold that are over: their names may come again, with another message."""
        for scope in [scope for scope in self._used if scope.startswith(prefix)]:
            del self._used[scope]
        for key in [key for key in self._rounds if key[1].startswith(prefix)]:
            del self._rounds[key]
