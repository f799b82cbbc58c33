"""The `tarry` command (rule 14). Only what a call needs is imported: `--version` answers at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

VERBS = {
    "worker": ("work:worker", "Run the workflows of MODULE:APP."),
    "start": ("deliver:start", "Start a run."),
    "signal": ("deliver:signal", "Deliver a signal to a run."),
    "send": ("deliver:send", "Append a message to a channel of a run."),
    "close-channel": ("operate:close_channel", "End the loop over a channel."),
    "cancel": ("operate:cancel", "Cancel a run."),
    "retry": ("operate:retry", "Let a blocked run go on, or run a failed one again."),
    "resolve": ("operate:resolve", "Say what became of a step whose outcome is unknown."),
    "runs": ("look:runs", "List runs."),
    "waits": ("look:waits", "List who waits for what."),
    "show": ("show:show", "Show one run as a timeline."),
    "receipt": ("look:receipt", "What became of a delivery."),
    "letters": ("look:letters", "List dead letters."),
    "workers": ("look:workers", "List workers."),
    "doctor": ("doctor:doctor", "Check store, machine and process."),
    "demo": ("demo.story:demo", "See Tarry under attack."),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point: exits with the code of rule 14."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given in (["--version"], ["-V"]):
        print(version("tarry"))
        return
    sys.exit(_run(given))


def _run(given: list[str]) -> int:
    from cyclopts import App, CycloptsError

    from tarry.edge.cli import failing

    command = App(
        name="tarry",
        help="Durable signals for Python: start runs, deliver to them, and see what they wait for.",
        version=version("tarry"),
        result_action="return_value",
        exit_on_error=False,
        print_error=True,
    )
    for verb, (target, tells) in VERBS.items():
        command.command(f"tarry.edge.cli.{target}", name=verb, help=tells)
    command.register_install_completion_command()  # pyright: ignore[reportUnknownMemberType]
    try:
        code = command(given) or failing.OK
        sys.stdout.flush()  # whether anybody reads it is found out here, not while the interpreter ends
        return code
    except CycloptsError:
        return failing.USAGE
    except KeyboardInterrupt:
        return failing.INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whoever read has gone
        return failing.OK
    except Exception as error:
        return failing.tell(error)
