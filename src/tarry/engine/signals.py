"""Stopping on SIGTERM and SIGINT: the first asks, the second insists."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager

STOPPING = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_on_signal(stop: Callable[[], None]) -> Generator[None, None, None]:
    loop = asyncio.get_running_loop()

    def once(number: int) -> None:
        loop.remove_signal_handler(number)
        stop()

    for number in STOPPING:
        loop.add_signal_handler(number, once, number)
    try:
        yield
    finally:
        for number in STOPPING:
            loop.remove_signal_handler(number)
