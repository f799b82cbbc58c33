"""The loads, for Tarry and for what it is measured against, in one command: `python -m bench`.

A figure of speed holds for one machine at one hour. So systems run in turn, load by load, three times over,
and what counts is the ratio within one run. Each result is checked for correctness in the run that measures
it.

    __main__.py     the command line
    loads.py        each load once, with its sizes, its measures and its goals
    roles.py        what a system must be able to do: a worker and a sender
    systems.py      the systems, and what each is not like for like with
    raw_sqlite.py   rows and commits alone: what the machine allows
    dbos_sqlite.py  DBOS
    contest.py      the order of play, the time limits, the medians
    crew.py         the processes of one trial, seen from the harness
    host.py         the same, seen from inside the process
    bill.py         statements, rows and bytes, counted in the process; billing.py: what one more unit costs
    table.py        what is shown and what is kept

A new system is one file with a Worker and a Sender, and one line in systems.py. Nothing but the standard
library is imported by roles.py, pace.py and host.py: a rival runs in an environment of its own.
"""
