"""What holds for every test: asyncio, no time limits inside Hypothesis, and no skips where CI runs.

A test that is skipped on a developer's machine, because something is not there, proves nothing; where CI runs
everything has to be there. So under CI=true a skip, and an expected failure, is a failure with a name.
"""

import os
from collections.abc import Generator
from typing import TypeVar

import pytest
from hypothesis import settings

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)
IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}

# Two busy cores make any time limit on one example a coin toss; the blob prints how to replay a failure.
settings.register_profile("tarry", deadline=None, print_blob=True)
settings.load_profile("tarry")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _counted((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _counted((yield))


def _counted(report: Report) -> Report:
    if IN_CI and report.skipped:
        told = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        reason = vars(report).pop("wasxfail", told)
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} did not run, and in CI every test must: {reason}"
    return report
