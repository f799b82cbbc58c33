"""The core at work on a store in memory: `desk()` is a driver, a schema or a declaration is one line."""

from tarry.core import accepts, codec
from tarry.core.accepts import Declared
from tarry.model import ArrivalKind
from tarry.store.memory import MemoryStore
from tarry.testing.clock import ManualClock
from tarry.testing.conformance_driver import Driver

INT = b'{"type":"integer"}'
INT_ID = codec.digest(INT)

TEXT = b'{"type":"string"}'
TEXT_ID = codec.digest(TEXT)

DOCUMENTS = {INT_ID: INT, TEXT_ID: TEXT}


def desk() -> Driver:
    clock = ManualClock()
    return Driver(MemoryStore(clock), clock)


def declare(driver: Driver, kind: ArrivalKind = ArrivalKind.SIGNAL, **names: Declared) -> str:
    """Puts on file what a workflow accepts; its digest."""
    document = accepts.write({(kind, name): declared for name, declared in names.items()})
    digest = codec.digest(document)
    driver.batch(documents=DOCUMENTS | {digest: document})
    return digest
