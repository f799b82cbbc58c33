-- Tarry on SQLite: the whole of it is these tables, and this is how they work together.
--
-- A run is one row of `runs`, and that row is its lock: a delivery, a claim, a pause, a timeout or an end is
-- one transaction that reads the run with what it has open, decides, and writes. Writers take turns (BEGIN
-- IMMEDIATE), so whatever is numbered in such a transaction is numbered in the order of commits.
--
--   a delivery       arrivals +1, the wait that it settles gets its outcome, the run becomes ready: one commit.
--                    A crash before it: nothing happened, and the sender was told nothing. After it: all of it.
--   duplicates       are decided by what is on file under the delivery's key; that two arrivals of one name never
--                    share a key is also a constraint (arrivals_key), should the code ever be wrong.
--   a claim          takes runs from `runs_due`, writes its worker and raises `epoch`. What a worker writes later
--                    names that epoch; under it lies a second fence, the primary key of `entries`: the number of a
--                    journal's next line is free, or somebody else has written it.
--   a pause          deletes nothing and holds nothing: the run is `waiting`, its open waits are rows of `waits`,
--                    and `due_ms` is the earliest of their deadlines, where there is one. Nobody polls it: it is
--                    found through `runs_due` when the instant comes, or made ready by a delivery.
--   a dead worker    stopped renewing its row in `workers`; its runs are found through `runs_worker`, made ready,
--                    and their epochs raised, so that it is fenced off should it wake up again.
--   an end           closes the waits; what arrived and was never read goes to `letters`.
--   other runs       are never touched: what a decision means for them leaves as a row of `outgoing`.
--
-- The journal of a run is `entries`, numbered by its owner: what the body took in, in that order. What came from
-- outside is `arrivals`, numbered in commit order. `slots` remembers of a name what no arrival tells: how far a
-- channel is acknowledged and the state folded over it, or why a signal's last round closed without a payload.
--
-- Layout. Each key is led by the run, so that what is loaded together lies together; the tables that are read by
-- key alone are WITHOUT ROWID: one tree to write instead of two. `runs` has a number of its own: it is the order
-- of lists, and a new run costs an append. The payloads of a run lie apart in `run_data`: a row is rewritten whole
-- whenever a column changes, and `runs` changes all the time. Indexes that serve only lists hang on columns that
-- change rarely: `phase` is the status with ready, running and waiting as one, so that the way of a live run
-- through them costs no index. Payloads are JSON text as bytes; what is sealed begins with a byte that JSON never
-- begins with. Times are milliseconds since 1970, UTC; leases by the clock of one boot.

create table runs (
    num integer primary key,
    id text not null unique check (length(id) between 1 and 200),
    workflow text not null,
    status text not null,
    phase text not null,
    tags text,
    accepts text,
    due_ms integer,
    deadline_ms integer,
    epoch integer not null,
    worker text,
    arrivals integer not null,
    buffered integer not null,
    buffered_bytes integer not null,
    crashes integer not null,
    attempt integer not null,
    cancelling integer not null,
    expiring integer not null,
    cancel_actor text,
    blocked text,
    reason text,
    culprit integer,
    created_ms integer not null,
    changed_ms integer not null,
    ended_ms integer
) strict;

create index runs_due on runs (workflow, due_ms) where status in ('ready', 'waiting') and due_ms is not null;
create index runs_worker on runs (worker) where worker is not null;
create index runs_phase on runs (phase);
create index runs_workflow on runs (workflow);

create table run_data (
    num integer primary key,
    input blob not null,
    result blob,
    error blob
) strict;

-- A run as the code knows it, its columns in the order of the record's fields.
create view run_records as
select
    r.id, r.workflow, r.status, d.input, r.tags, r.accepts, r.due_ms, r.deadline_ms, r.epoch, r.worker,
    r.arrivals, r.buffered, r.buffered_bytes, r.crashes, r.attempt, r.cancelling, r.expiring, r.cancel_actor,
    r.blocked, r.reason, d.result, d.error, r.culprit, r.created_ms, r.changed_ms, r.ended_ms, r.num, r.phase
from runs r cross join run_data d on d.num = r.num;

create table run_tags (
    tag text not null,
    value text not null,
    num integer not null,
    primary key (tag, value, num)
) strict, without rowid;

create index run_tags_num on run_tags (num);

create table entries (
    run_id text not null,
    no integer not null,
    kind text not null,
    scope text not null,
    name text not null,
    round integer not null,
    outcome text not null,
    value blob,
    digest text,
    arrival integer,
    at_ms integer not null,
    primary key (run_id, no)
) strict, without rowid;

-- What lies inside a step or a round of a fold, and goes with the round; the rest of a journal pays nothing.
create index entries_scope on entries (run_id, scope) where scope <> '';

create table waits (
    run_id text not null,
    kind text not null,
    scope text not null,
    name text not null,
    round integer not null,
    "group" text,
    member integer not null,
    deadline_ms integer,
    "schema" text,
    early integer not null,
    late integer not null,
    cursor integer not null,
    opened_ms integer not null,
    outcome text,
    number integer,
    arrival integer,
    primary key (run_id, kind, scope, name, round)
) strict, without rowid;

create index waits_open on waits (opened_ms) where outcome is null;

create table arrivals (
    run_id text not null,
    no integer not null,
    kind text not null,
    name text not null,
    key text not null,
    payload blob not null,
    actor text,
    status text not null,
    settles integer not null,
    detail blob,
    at_ms integer not null,
    primary key (run_id, kind, name, no)
) strict, without rowid;

create unique index arrivals_key on arrivals (run_id, kind, name, key);

create table slots (
    run_id text not null,
    kind text not null,
    name text not null,
    acked integer not null,
    state blob,
    closed text,
    closed_ms integer,
    primary key (run_id, kind, name)
) strict, without rowid;

create table letters (
    num integer primary key,
    id text not null unique,
    run_id text not null,
    kind text not null,
    name text not null,
    key text,
    payload blob not null,
    actor text,
    reason text not null,
    detail blob,
    at_ms integer not null,
    until_ms integer not null
) strict;

create index letters_run on letters (run_id);
create index letters_until on letters (until_ms);

create table audits (
    num integer primary key,
    run_id text not null,
    actor text,
    action text not null,
    detail text not null,
    at_ms integer not null
) strict;

create index audits_run on audits (run_id);

create table outgoing (
    num integer primary key,
    run_id text not null,
    no integer not null,
    target text not null,
    action text not null,
    body blob not null,
    at_ms integer not null,
    unique (run_id, no)
) strict;

create table workers (
    id text primary key,
    boot text not null,
    lease_until_ms integer not null,
    address text,
    host text not null,
    pid integer not null,
    workflows text not null,
    started_ms integer not null,
    beat_ms integer not null
) strict, without rowid;

-- JSON documents by digest: what workflows declare, and the schemas that payloads are checked against.
create table documents (
    digest text primary key,
    body blob not null
) strict, without rowid;

-- The ids of pruned runs stay taken for a while.
create table tombstones (
    run_id text primary key,
    until_ms integer not null
) strict, without rowid;
