"""Campaigns of simulated schedules.

python -m tests.campaign --short          what CI plays: fresh seeds and all that ever failed
python -m tests.campaign                  a long one
python -m tests.campaign --seed 17        one seed, with its trace
python -m tests.campaign --ledger …       and a row for docs/ledger.jsonl
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import time
from pathlib import Path

from tarry.testing.sim.campaign import Tally, run
from tarry.testing.sim.rare import SOMETIMES
from tarry.testing.sim.schedule import play

ROOT = Path(__file__).parents[2]
SEEDS = ROOT / "tests" / "sim" / "seeds.txt"
LEDGER = ROOT / "docs" / "ledger.jsonl"
SHORT, SHORT_S, LONG = 20_000, 240, 200_000


def failed_before() -> list[int]:
    lines = SEEDS.read_text(encoding="utf-8").splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]


def one(seed: int) -> int:
    verdict = play(seed, tracing=True)
    print(*verdict.trace, sep="\n")
    for broken in verdict.broken:
        print(f"BROKEN: {broken}")
    print(f"seed {seed}: {'broken' if verdict.broken else 'whole'}, trace {verdict.digest}")
    return bool(verdict.broken)


def campaign(seeds: list[int], processes: int, within_s: float) -> Tally:
    total, end = Tally(), time.monotonic() + within_s
    for part in run(seeds, processes):
        total.add(part)
        for seed, broken in part.broken.items():
            print(f"seed {seed} is broken; replay: python -m tests.campaign --seed {seed}")
            print(*(f"  {line}" for line in broken), sep="\n", flush=True)
        if len(total.broken) >= 10:
            print("ten seeds are broken: that will do")
            break
        if time.monotonic() > end:
            break
    return total


def summary(total: Tally) -> str:
    shown = [f"{total.schedules} schedules", f"{len(total.broken)} broken"]
    kinds = ("commits", "kill", "pause", "zombie", "unknown, landed", "unknown, not landed", "lost before", "busy")
    shown += [f"{kind} {total.counts[kind]}" for kind in kinds]
    shown.append(f"rare states {len(SOMETIMES) - len(total.missed)} of {len(SOMETIMES)}")
    return "; ".join(shown)


def ledger_row(total: Tally, first: int, count: int) -> str:
    told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    row = {
        "commit": told.stdout.strip(),
        "command": f"python -m tests.campaign --first {first} --count {count}",
        "seeds": [first, first + count - 1],
        "schedules": total.schedules,
        "broken": sorted(total.broken),
        "counts": dict(sorted(total.counts.items())),
        "traces": total.digest,
    }
    return json.dumps(row)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--first", type=int)
    parser.add_argument("--count", type=int)
    parser.add_argument("--within", type=float, metavar="SECONDS", help="end early, after the chunk at hand")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--ledger", action="store_true")
    options = parser.parse_args()
    if options.seed is not None:
        return one(options.seed)
    first = random.SystemRandom().randrange(1 << 40) if options.first is None else options.first
    count = options.count or (SHORT if options.short else LONG)
    within_s = options.within or (SHORT_S if options.short else math.inf)
    total = campaign([*range(first, first + count)], options.processes, within_s)
    old = campaign(failed_before(), 1, math.inf)
    print(f"seeds {first} to {first + total.schedules - 1}: {summary(total)}; traces {total.digest}")
    print(f"seeds that failed before: {summary(old)}")
    missed = total.missed if total.schedules >= 2_000 else []
    if missed:
        print(f"never reached: {', '.join(missed)}")
    if options.ledger:
        LEDGER.parent.mkdir(exist_ok=True)
        with LEDGER.open("a", encoding="utf-8") as file:
            file.write(ledger_row(total, first, total.schedules) + "\n")
    return bool(total.broken or old.broken or missed)


if __name__ == "__main__":
    sys.exit(main())
