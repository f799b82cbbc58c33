-- The statements of the SQLite store, by name. Hot ones bind a row each and are run over many rows at once; none
-- may need the planner's luck: how each reaches its rows is tested, with and without statistics.

-- name: begin
begin immediate;

-- name: commit
commit;

-- name: rollback
rollback;


-- Loading a batch of runs.

-- name: load_run
select * from run_records where id = ?1;

-- name: load_tombstone
select run_id from tombstones where run_id = ?1;

-- name: load_waits
select * from waits where run_id = ?1;

-- name: load_key
select * from arrivals indexed by arrivals_key where run_id = ?1 and kind = ?2 and name = ?3 and key = ?4;

-- name: load_live
select * from arrivals
where run_id = ?1 and kind = ?2 and name = ?3 and status in ('delivered', 'buffered')
order by no;

-- name: load_arrival
select * from arrivals where run_id = ?1 and kind = ?2 and name = ?3 and no = ?4;

-- name: load_slot
select * from slots where run_id = ?1 and kind = ?2 and name = ?3;

-- name: load_page
select ?3, ?4, arrivals.* from arrivals
where run_id = ?1 and kind = 'channel' and name = ?2 and no > ?3
order by no limit ?4;

-- name: load_entry
select * from entries where run_id = ?1 and no = ?2;

-- name: load_last_entry
select ?1, max(no) from entries where run_id = ?1;


-- What a pass answers from.

-- name: load_entries
select * from entries where run_id = ?1 order by no;

-- name: load_signals
select * from arrivals where run_id = ?1 and kind = 'signal' order by name, no;

-- name: load_heads
select * from slots where run_id = ?1 and kind = 'channel' order by name;

-- name: load_channels
with recursive channel (name) as (
    select min(name) from arrivals where run_id = ?1 and kind = 'channel'
    union all
    select (select min(name) from arrivals where run_id = ?1 and kind = 'channel' and name > channel.name)
    from channel where name is not null
)
select ?1, name from channel where name is not null;


-- Saving a batch of runs.

-- name: put_run
insert into runs (
    id, workflow, status, phase, tags, accepts, due_ms, deadline_ms, epoch, worker, arrivals, buffered,
    buffered_bytes, crashes, attempt, cancelling, expiring, cancel_actor, blocked, reason, culprit, created_ms,
    changed_ms, ended_ms
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_run_data
insert into run_data (num, input, result, error) select num, ?2, ?3, ?4 from runs where id = ?1;

-- name: set_run
update runs set
    status = ?2, phase = ?3, tags = ?4, accepts = ?5, due_ms = ?6, deadline_ms = ?7, epoch = ?8, worker = ?9,
    arrivals = ?10, buffered = ?11, buffered_bytes = ?12, crashes = ?13, attempt = ?14, cancelling = ?15,
    expiring = ?16, cancel_actor = ?17, blocked = ?18, reason = ?19, culprit = ?20, changed_ms = ?21,
    ended_ms = ?22
where id = ?1;

-- name: move_run
update runs set
    arrivals = ?2, buffered = ?3, buffered_bytes = ?4, crashes = ?5, attempt = ?6, changed_ms = ?7, status = ?8,
    due_ms = ?9, worker = ?10, epoch = ?11
where id = ?1;

-- name: count_run
update runs set
    arrivals = ?2, buffered = ?3, buffered_bytes = ?4, crashes = ?5, attempt = ?6, changed_ms = ?7
where id = ?1;

-- name: set_run_data
update run_data set result = ?2, error = ?3 where num = (select num from runs where id = ?1);

-- name: put_tag
insert or ignore into run_tags (tag, value, num) select ?2, ?3, num from runs where id = ?1;

-- name: drop_tags
delete from run_tags where num = (select num from runs where id = ?1);

-- name: add_entry
insert into entries values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: drop_entry
delete from entries where run_id = ?1 and no = ?2;

-- name: drop_scope
delete from entries indexed by entries_scope
where run_id = ?1 and scope <> '' and scope >= ?2 and scope < ?2 || char(1114111);

-- name: put_wait
insert or replace into waits values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: drop_wait
delete from waits where run_id = ?1 and kind = ?2 and scope = ?3 and name = ?4 and round = ?5;

-- name: drop_waits
delete from waits where run_id = ?1;

-- name: put_arrival
insert into arrivals values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (run_id, kind, name, no) do update set
    status = excluded.status, settles = excluded.settles, detail = excluded.detail;

-- name: drop_arrival
delete from arrivals where run_id = ?1 and kind = ?2 and name = ?3 and no = ?4;

-- name: load_unread
with recursive channel (name) as (
    select min(name) from arrivals where run_id = ?1 and kind = 'channel'
    union all
    select (select min(name) from arrivals where run_id = ?1 and kind = 'channel' and name > channel.name)
    from channel where name is not null
)
select a.* from arrivals a where a.run_id = ?1 and a.kind = 'signal' and a.status = 'buffered'
union all
select a.* from channel c cross join arrivals a on a.name = c.name
where a.run_id = ?1 and a.kind = 'channel' and a.status = 'buffered' and a.no > coalesce(
    (select acked from slots where run_id = ?1 and kind = 'channel' and name = c.name), 0
);

-- name: put_slot
insert or replace into slots values (?, ?, ?, ?, ?, ?, ?);

-- name: put_letter
insert or replace into letters (
    id, run_id, kind, name, key, payload, actor, reason, detail, at_ms, until_ms
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: add_audit
insert into audits (run_id, actor, action, detail, at_ms) values (?, ?, ?, ?, ?);

-- name: put_outgoing
insert or replace into outgoing (run_id, no, target, action, body, at_ms) values (?, ?, ?, ?, ?, ?);

-- name: drop_outgoing
delete from outgoing where run_id = ?1 and no = ?2;

-- name: put_document
insert or ignore into documents values (?, ?);


-- What concerns no single run.

-- name: due
select due_ms, num, id, workflow from runs indexed by runs_due
where workflow = ?1 and status in ('ready', 'waiting') and due_ms is not null and due_ms <= ?2
order by due_ms limit ?3;

-- name: next_due
select min(due_ms) from runs indexed by runs_due
where workflow = ?1 and status in ('ready', 'waiting') and due_ms is not null;

-- name: held
select id, epoch from runs indexed by runs_worker where worker = ?1;

-- name: orphans
with recursive owner (id) as (
    select min(worker) from runs indexed by runs_worker where worker is not null
    union all
    select (select min(worker) from runs indexed by runs_worker where worker > owner.id and worker is not null)
    from owner where owner.id is not null
)
select r.id, r.worker
from owner cross join runs r indexed by runs_worker on r.worker = owner.id
where owner.id is not null and r.worker is not null and not exists (
    select 1 from workers w where w.id = owner.id and w.boot = ?1 and w.lease_until_ms > ?2
)
limit ?3;

-- name: lapsed
select id from workers w
where not (boot = ?1 and lease_until_ms > ?2)
and not exists (select 1 from runs r indexed by runs_worker where r.worker = w.id and r.worker is not null);

-- name: put_worker
insert or replace into workers values (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: beat
update workers set
    boot = ?2, lease_until_ms = ?3, address = ?4, host = ?5, pid = ?6, workflows = ?7, started_ms = ?8,
    beat_ms = ?9
where id = ?1
returning id;

-- name: leave
delete from workers where id = ?1;

-- name: live
select 1 from workers where id = ?1 and boot = ?2 and lease_until_ms > ?3;

-- name: outgoing
select run_id, no, target, action, body, at_ms from outgoing order by num limit ?1;

-- name: expire_letters
delete from letters where num in (select num from letters where until_ms <= ?1 order by until_ms limit ?2)
returning num;


-- Reading.

-- name: run_status
select id, status from runs where id = ?1;

-- name: winner
select * from arrivals where run_id = ?1 and kind = 'signal' and name = ?2 and settles order by no limit 1;

-- name: acked
select acked from slots where run_id = ?1 and kind = 'channel' and name = ?2;

-- name: document
select body from documents where digest = ?1;

-- name: workers
select * from workers order by started_ms, id;

-- name: page_entries
select * from entries where run_id = ?1 and no > ?2 order by no limit ?3;

-- name: page_signals
select * from arrivals where run_id = ?1 and kind = 'signal' and no > ?2 order by no limit ?3;

-- name: page_runs
select * from run_records where num > :after order by num limit :limit;

-- name: page_runs_by_status
select r.* from runs i indexed by runs_phase cross join run_records r on r.num = i.num
where i.phase = :phase and i.num > :after
and r.status = :status and (:workflow is null or r.workflow = :workflow)
order by i.num limit :limit;

-- name: page_runs_by_workflow
select r.* from runs i indexed by runs_workflow cross join run_records r on r.num = i.num
where i.workflow = :workflow and i.num > :after
order by i.num limit :limit;

-- name: page_runs_by_tag
select r.* from run_tags t cross join run_records r on r.num = t.num
where t.tag = :tag and t.value = :value and t.num > :after
and (:workflow is null or r.workflow = :workflow) and (:status is null or r.status = :status)
and substr(r.id, 1, length(:prefix)) = :prefix
order by t.num limit :limit;

-- name: page_runs_by_prefix
select * from run_records
where id >= :first and id < :prefix || char(1114111) and id <> :after
and (:workflow is null or workflow = :workflow) and (:status is null or status = :status)
order by id limit :limit;

-- name: page_waits
select w.*, r.* from waits w indexed by waits_open cross join run_records r on r.id = w.run_id
where w.outcome is null and r.phase in ('live', 'blocked')
and (w.opened_ms, w.run_id, w.kind, w.scope, w.name, w.round)
    > (:opened, :run, :kind_after, :scope, :name_after, :round)
and (:opened_before is null or w.opened_ms < :opened_before)
and (:name is null or w.name = :name) and (:kind is null or w.kind = :kind)
and (:overdue_at is null or w.deadline_ms < :overdue_at)
and (:workflow is null or r.workflow = :workflow)
order by w.opened_ms, w.run_id, w.kind, w.scope, w.name, w.round limit :limit;

-- name: page_waits_of_run
select w.*, r.* from waits w cross join run_records r on r.id = w.run_id
where w.run_id = :run_id and w.outcome is null and r.phase in ('live', 'blocked')
and (w.opened_ms, w.run_id, w.kind, w.scope, w.name, w.round)
    > (:opened, :run, :kind_after, :scope, :name_after, :round)
and (:opened_before is null or w.opened_ms < :opened_before)
and (:name is null or w.name = :name) and (:kind is null or w.kind = :kind)
and (:overdue_at is null or w.deadline_ms < :overdue_at)
and (:workflow is null or r.workflow = :workflow)
and (:tag is null or exists (
    select 1 from run_tags t where t.tag = :tag and t.value = :value and t.num = r.num
))
order by w.opened_ms, w.run_id, w.kind, w.scope, w.name, w.round limit :limit;

-- name: page_waits_by_tag
select w.*, r.* from run_tags t
cross join run_records r on r.num = t.num
cross join waits w on w.run_id = r.id
where t.tag = :tag and t.value = :value and w.outcome is null and r.phase in ('live', 'blocked')
and (w.opened_ms, w.run_id, w.kind, w.scope, w.name, w.round)
    > (:opened, :run, :kind_after, :scope, :name_after, :round)
and (:opened_before is null or w.opened_ms < :opened_before)
and (:name is null or w.name = :name) and (:kind is null or w.kind = :kind)
and (:overdue_at is null or w.deadline_ms < :overdue_at)
and (:workflow is null or r.workflow = :workflow)
order by w.opened_ms, w.run_id, w.kind, w.scope, w.name, w.round limit :limit;

-- name: page_letters
select id, run_id, kind, name, key, payload, actor, reason, detail, at_ms, until_ms, num from letters
where num > :after and (:name is null or name = :name) and (:reason is null or reason = :reason)
order by num limit :limit;

-- name: page_letters_of_run
select id, run_id, kind, name, key, payload, actor, reason, detail, at_ms, until_ms, num from letters
where run_id = :run_id and num > :after
and (:name is null or name = :name) and (:reason is null or reason = :reason)
order by num limit :limit;

-- name: page_audits
select run_id, actor, action, detail, at_ms, num from audits where num > :after order by num limit :limit;

-- name: page_audits_of_run
select run_id, actor, action, detail, at_ms, num from audits
where run_id = :run_id and num > :after order by num limit :limit;


-- The file.

-- name: tables
select count(*) from sqlite_schema;

-- name: change
pragma data_version;

-- name: quick_check
pragma quick_check(1);
