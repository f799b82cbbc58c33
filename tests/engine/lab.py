"""A laboratory for runs: no worker loop, no waiting; each test says when the run goes on and when time passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tarry import App, DriveResult, Status
from tarry.core.retry import Duration
from tarry.store.memory import MemoryStore
from tarry.store.protocol import Store
from tarry.testing.clock import ManualClock


class Lab:
    def __init__(self, clock: ManualClock, opened: Callable[[], Store]) -> None:
        self.clock = clock
        self.log: list[Any] = []
        self._opened = opened
        self._app: App | None = None

    @property
    def app(self) -> App:
        if self._app is None:
            self._app = App(self._opened())
        return self._app

    def note(self, what: Any) -> Any:
        """A step's body that leaves a trace and returns what it was given."""
        self.log.append(what)
        return what

    async def start(self, body: Callable[..., Any], *args: Any, id: str = "r", **options: Any) -> DriveResult:
        """Registers the body if it is new, starts a run of it and drives it to its first pause."""
        self.register(body)
        await self.app.start(body, *args, id=id, **options)
        return await self.app.drive(id)

    def register(self, body: Callable[..., Any], **options: Any) -> None:
        if self.app.registry.find(body.__name__) is None:
            self.app.workflow(**options)(body)  # type: ignore[type-var]

    async def go_on(self, id: str = "r") -> DriveResult:
        return await self.app.drive(id)

    async def after(self, duration: Duration, id: str = "r") -> DriveResult:
        """Time passes, and whatever is due goes on."""
        self.clock.advance(duration)
        return await self.app.drive(id)

    async def result(self, id: str = "r") -> Any:
        return await self.app.handle(id).result(timeout=5)

    async def status(self, id: str = "r") -> Status:
        return (await self.app.run(id)).status

    async def waits(self, id: str = "r") -> list[str]:
        return [row.name for row in (await self.app.waits(run=id)).rows]

    async def journal(self, id: str = "r") -> list[tuple[str, str, str]]:
        """(kind, scope + name, outcome) of each entry, in order."""
        rows = (await self.app.journal(id, limit=1000)).rows
        return [(row.kind, row.scope + row.name, row.outcome) for row in rows]

    async def letters(self, id: str = "r") -> list[tuple[str, str]]:
        return [(row.name, row.reason) for row in (await self.app.dead_letters(run=id)).rows]

    async def restart(self, *bodies: Callable[..., Any]) -> None:
        """Another process, with the same code or with `bodies` under the names of the old."""
        registry = self.app.registry
        if not isinstance(self.app.store, MemoryStore):
            await self.app.close()
        self._app = App(self._opened())
        if bodies:
            for body in bodies:
                self.register(body)
        else:
            self._app.registry = registry
