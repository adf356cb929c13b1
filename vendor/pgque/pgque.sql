-- Generated from src/, version 1.2.0: do not edit.

-- src/00_schema.sql

-- The event log: producers append events, a ticker marks the log with MVCC
-- snapshots, consumers read what lies between two marks.
--
-- Invariants of the whole engine:
--  * An event belongs to the window (A, B] of two ticks when its transaction is
--    visible in B's snapshot and not in A's. Nothing else decides delivery.
--  * Ticks of one queue never go back: they are taken one at a time, each with
--    a snapshot made after the lock was obtained.
--  * Readers look into every event table that holds rows. The number of the
--    current table only says where producers write.
--  * An event table is truncated only when, under an exclusive lock, no row in
--    it is still to be read by a subscription.
--
-- Installing needs the right to create a schema in this database, and CREATEROLE
-- only when the three pgque roles do not exist yet. The caller owns the transaction.

create schema if not exists pgque;
comment on schema pgque is 'Event log with consumers, batches, retries and dead letters (PgQue 0.2 API)';

do $$
-- Over an installation at work: its open transactions end first, and new ones wait.
-- The tables come before the lock on written code (see _queue_changed), as in a rotation.
begin
    if to_regclass('pgque.dead_letter') is not null then
        lock table pgque.queue, pgque.subscription, pgque.tick, pgque.retry_queue, pgque.dead_letter
        in share row exclusive mode;
        perform pg_advisory_xact_lock(hashtext('pgque.code'));
    end if;
end $$;

do $$
-- Internal functions of another version go: this one may shape them otherwise. Those
-- of this version stay, for sessions that are just running them.
declare v_version text; v_drop text;
begin
    if to_regprocedure('pgque.engine_version()') is not null then
        execute 'select pgque.engine_version()' into v_version;
    end if;
    if v_version = '1.2.0' then return; end if;
    for v_drop in
        select format('drop function %s', p.oid::regprocedure) from pg_proc p
        where p.pronamespace = to_regnamespace('pgque') and p.proname like '\_%' and p.prorettype <> 'trigger'::regtype
        union all
        select 'drop function if exists pgque.seq_getval(text), pgque.seq_setval(text, bigint)'
        union all
        select format('drop %s pgque._window', case c.relkind when 'v' then 'view' else 'type' end) from pg_class c
        where c.relnamespace = to_regnamespace('pgque') and c.relname = '_window'
    loop
        execute v_drop;
    end loop;
end $$;

do $$
begin
    if to_regtype('pgque.message') is null then
        create type pgque.message as (
            msg_id bigint, batch_id bigint, type text, payload text, retry_count integer, created_at timestamptz,
            extra1 text, extra2 text, extra3 text, extra4 text
        );
    end if;
end $$;
comment on type pgque.message is 'An event as handed to a consumer; clients read and build it by position';

create or replace function pgque.version()
returns text language sql immutable security definer set search_path = pgque, pg_catalog, pg_temp as $$ select '0.2.2' $$;
comment on function pgque.version() is 'Version of the PgQue API that this engine implements';

create or replace function pgque.engine_version()
returns text language sql immutable security definer set search_path = pgque, pg_catalog, pg_temp as $$ select '1.2.0' $$;
comment on function pgque.engine_version() is 'Version of this engine itself; equals the file VERSION';

-- src/10_tables.sql

-- Tables: queues and their consumers, ticks, and the events that wait outside
-- the event tables (retries, dead letters). Event tables are made per queue.

create table if not exists pgque.config (
    singleton boolean primary key default true check (singleton),
    ticker_job_id bigint,
    maint_job_id bigint,
    scheduler text constraint config_scheduler_check check (scheduler in ('pg_cron', 'pg_timetable')),
    tick_period_ms integer not null default 100
        constraint config_tick_period_ms_check
        check (tick_period_ms between 1 and 1000 and 1000 % tick_period_ms = 0),
    installed_at timestamptz default clock_timestamp()
);
comment on table pgque.config is 'Settings of this installation: exactly one row';
insert into pgque.config (singleton) values (true) on conflict do nothing;

create table if not exists pgque.consumer (
    co_id serial primary key,
    co_name text not null constraint consumer_name_uq unique
);
comment on table pgque.consumer is 'Names of consumers; members of a group are called consumer.subconsumer';

create table if not exists pgque.queue (
    queue_id serial primary key,
    queue_name text not null constraint queue_name_uq unique,
    queue_ntables integer not null default 3,
    queue_cur_table integer not null default 0,
    queue_rotation_period interval not null default '2 hours',
    queue_switch_step1 bigint not null default pg_current_xact_id()::text::bigint,
    queue_switch_step2 bigint default pg_current_xact_id()::text::bigint,
    queue_switch_time timestamptz not null default now(),
    queue_external_ticker boolean not null default false,
    queue_disable_insert boolean not null default false,
    queue_ticker_paused boolean not null default false,
    queue_ticker_max_count integer not null default 500,
    queue_ticker_max_lag interval not null default '3 seconds',
    queue_ticker_idle_period interval not null default '1 minute',
    queue_data_pfx text not null,
    queue_event_seq text not null,
    queue_tick_seq text not null,
    queue_extra_maint text[],
    queue_max_retries integer
);
comment on table pgque.queue is 'Queues and their settings';

create table if not exists pgque.tick (
    tick_queue integer not null references pgque.queue (queue_id),
    tick_id bigint not null,
    tick_time timestamptz not null default now(),
    tick_snapshot pg_snapshot not null default pg_current_snapshot(),
    tick_event_seq bigint not null,
    primary key (tick_queue, tick_id)
);
comment on table pgque.tick is 'Marks in the stream: snapshots of what was committed at that moment';

create table if not exists pgque.subscription (
    sub_id serial not null,
    sub_queue integer not null constraint sub_queue_fkey references pgque.queue (queue_id),
    sub_consumer integer not null constraint sub_consumer_fkey references pgque.consumer (co_id),
    sub_last_tick bigint,
    sub_active timestamptz not null default now(),
    sub_batch bigint,
    sub_next_tick bigint,
    sub_role text not null default 'normal'
        constraint subscription_sub_role_check check (sub_role in ('normal', 'coop_main', 'coop_member')),
    primary key (sub_queue, sub_consumer)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
comment on table pgque.subscription is 'Place of a consumer in a queue; updated twice per batch';
-- ack, nack and get_batch_events find the subscription of a batch here.
create unique index if not exists subscription_batch_idx on pgque.subscription (sub_batch);
create sequence if not exists pgque.batch_id_seq owned by pgque.subscription.sub_batch;
comment on sequence pgque.batch_id_seq is 'Batch ids, one series for all queues';

create table if not exists pgque.coop_window (
    cw_queue integer not null,
    cw_consumer integer not null,
    cw_from_tick bigint not null,
    cw_to_tick bigint not null,
    primary key (cw_queue, cw_consumer, cw_from_tick),
    constraint coop_window_subscription_fkey foreign key (cw_queue, cw_consumer)
        references pgque.subscription (sub_queue, sub_consumer) on delete cascade
);
comment on table pgque.coop_window is 'Windows that a group has handed out ahead of its cursor';

create table if not exists pgque.event_template (
    ev_id bigint not null,
    ev_time timestamptz not null,
    ev_txid xid8 not null default pg_current_xact_id(),
    ev_owner integer,
    ev_retry integer,
    ev_type text, ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text
);
comment on table pgque.event_template is 'Parent of all event tables; holds no rows';

create table if not exists pgque.retry_queue (
    ev_retry_after timestamptz not null,
    ev_queue integer not null constraint rq_queue_id_fkey references pgque.queue (queue_id),
    ev_id bigint not null, ev_time timestamptz not null, ev_txid xid8, ev_owner integer not null, ev_retry integer,
    ev_type text, ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text,
    constraint rq_pkey primary key (ev_owner, ev_id)
);
comment on table pgque.retry_queue is 'Events that wait to be delivered again to one subscription';
-- maint_retry_events() finds due rows here.
create index if not exists rq_retry_idx on pgque.retry_queue (ev_retry_after);

create table if not exists pgque.dead_letter (
    dl_id bigserial primary key,
    dl_queue_id integer not null references pgque.queue (queue_id) on delete cascade,
    dl_consumer_id integer not null references pgque.consumer (co_id) on delete cascade,
    dl_time timestamptz not null default now(),
    dl_reason text,
    ev_id bigint not null, ev_time timestamptz not null, ev_txid xid8, ev_retry integer,
    ev_type text, ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text
);
comment on table pgque.dead_letter is 'Events whose retries ran out, kept with the reason';
-- Giving up twice on one event keeps one row.
create unique index if not exists dl_queue_consumer_ev_idx
on pgque.dead_letter (dl_queue_id, dl_consumer_id, ev_id);
-- dlq_inspect() and dlq_purge() read by age.
create index if not exists dl_queue_time_idx on pgque.dead_letter (dl_queue_id, dl_time);
-- Operators group letters by type and cause (the reason without addresses, keys and
-- numbers), and look for what the producer called an event.
create index if not exists dl_cause_idx on pgque.dead_letter (
    dl_queue_id, dl_consumer_id, left(coalesce(ev_type, ''), 100),
    left(regexp_replace(coalesce(dl_reason, ''),
    '\S+@\S+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]+', '#', 'g'), 200),
    dl_id
);
create index if not exists dl_key_idx on pgque.dead_letter using hash (ev_extra1);

create or replace view pgque._window as
select s.sub_batch as batch_id, s.sub_queue as queue_id, s.sub_consumer as consumer_id, s.sub_id,
    s.sub_last_tick as from_tick, f.tick_time as from_time, f.tick_event_seq as from_seq, f.tick_snapshot as from_snapshot,
    s.sub_next_tick as to_tick, t.tick_time as to_time, t.tick_event_seq as to_seq, t.tick_snapshot as to_snapshot
from pgque.subscription s
left join pgque.tick f on f.tick_queue = s.sub_queue and f.tick_id = s.sub_last_tick
left join pgque.tick t on t.tick_queue = s.sub_queue and t.tick_id = s.sub_next_tick
where s.sub_batch is not null;
comment on view pgque._window is 'Open batches: all that is needed to read the events between the two ticks of each';

-- src/12_columns.sql

-- What each column means.

do $$
declare v_columns record; v_relation text;
begin
    for v_columns in select * from (values
        ('config', array[
            'singleton', 'Always true: one row only', 'installed_at', 'Time of the first installation',
            'ticker_job_id', 'Outside job that runs the ticker', 'maint_job_id', 'Outside job that runs maintenance',
            'scheduler', 'Outside scheduler, if any', 'tick_period_ms', 'Pause between two passes of ticker_loop()']),
        ('consumer', array['co_id', 'Consumer id', 'co_name', 'Consumer name']),
        ('queue', array[
            'queue_id', 'Part of the names of its tables', 'queue_name', 'The NOTIFY channel is pgque_<name>',
            'queue_ntables', 'Number of event tables in rotation', 'queue_cur_table', 'Event table that producers write to',
            'queue_rotation_period', 'Least time between two rotations', 'queue_switch_time', 'Time of the last rotation',
            'queue_switch_step1', 'Transaction of the last rotation, first step',
            'queue_switch_step2', 'Transaction of its second step; NULL until that has run',
            'queue_external_ticker', 'Ticks come through ticker() with four arguments',
            'queue_disable_insert', 'Refuse new events', 'queue_ticker_paused', 'Make no ticks',
            'queue_ticker_max_count', 'Tick when so many events wait', 'queue_ticker_max_lag', 'Tick when events waited so long',
            'queue_ticker_idle_period', 'Longest time between two ticks of an idle queue',
            'queue_data_pfx', 'Event tables are called <prefix>_<number>', 'queue_tick_seq', 'Sequence of tick ids',
            'queue_event_seq', 'Sequence of event ids; also counts events for the ticker',
            'queue_extra_maint', 'Functions f(queue name) that maint() runs, if its owner owns them',
            'queue_max_retries', 'Redeliveries before an event becomes a dead letter; NULL means 5']),
        ('tick', array[
            'tick_queue', 'Queue', 'tick_id', 'Grows within the queue', 'tick_time', 'Time of the tick',
            'tick_snapshot', 'Transactions finished at the tick', 'tick_event_seq', 'Events sent, for throttling and statistics']),
        ('subscription', array[
            'sub_id', 'One for all members of a group, so that retries reach the group',
            'sub_queue', 'Queue', 'sub_consumer', 'Consumer', 'sub_active', 'Last sign of life', 'sub_batch', 'Open batch',
            'sub_last_tick', 'Tick up to which all is done; of a member: start of the open batch',
            'sub_next_tick', 'Tick at the end of the open batch',
            'sub_role', 'normal, coop_main (cursor of a group) or coop_member (holds batches of a group)']),
        ('coop_window', array[
            'cw_queue', 'Queue', 'cw_consumer', 'Main consumer of the group',
            'cw_from_tick', 'Tick at the start of the window', 'cw_to_tick', 'Tick at the end of the window']),
        ('event_template retry_queue dead_letter', array[
            'ev_id', 'Event id, unique within the queue', 'ev_time', 'Start of the transaction that sent the event',
            'ev_txid', 'Top-level transaction that wrote this row', 'ev_type', 'Event type', 'ev_data', 'Event data',
            'ev_retry', 'Redeliveries so far; NULL on the first delivery', 'ev_extra1', 'Free for the producer',
            'ev_extra2', 'Free for the producer', 'ev_extra3', 'Free for the producer', 'ev_extra4', 'Free for the producer']),
        ('event_template retry_queue', array['ev_owner', 'Subscription that alone gets this row; NULL for all']),
        ('retry_queue', array[
            'ev_retry_after', 'Time from which the event may come again', 'ev_queue', 'Queue',
            'ev_txid', 'Always NULL: re-insertion gives a new one', 'ev_retry', 'Number of the coming redelivery']),
        ('dead_letter', array[
            'dl_id', 'Dead letter id', 'dl_queue_id', 'Queue', 'dl_time', 'Time of giving up',
            'dl_consumer_id', 'Who gave up; the main consumer for members of a group', 'dl_reason', 'Reason that it gave']),
        ('message', array[
            'msg_id', 'Event id', 'batch_id', 'Batch to acknowledge', 'type', 'Event type', 'payload', 'Event data, as sent',
            'retry_count', 'Redeliveries so far; NULL on the first', 'created_at', 'Start of the sending transaction',
            'extra1', 'Free for the producer', 'extra2', 'Free for the producer',
            'extra3', 'Free for the producer', 'extra4', 'Free for the producer'])
    ) c (relations, meanings) loop
        foreach v_relation in array string_to_array(v_columns.relations, ' ') loop
            for i in 1..cardinality(v_columns.meanings) by 2 loop
                execute format('comment on column pgque.%I.%I is %L',
                    v_relation, v_columns.meanings[i], v_columns.meanings[i + 1]);
            end loop;
        end loop;
    end loop;
end $$;

-- src/20_queues.sql

-- Queues: create, configure, drop. A queue is a row, a family of event tables
-- (a parent and queue_ntables children that take turns) and two sequences.

create or replace function pgque._queue(i_name text, i_refusal text default 'queue not found: %s')
returns pgque.queue language plpgsql as $$
declare v_queue pgque.queue;
begin
    select * into v_queue from pgque.queue where queue_name = i_name;
    if not found then raise exception '%', format(i_refusal, coalesce(i_name, '<NULL>')); end if;
    return v_queue;
end $$;
comment on function pgque._queue is 'Queue by name; raises what the caller has to say when there is none';

create or replace function pgque._event_table(i_queue pgque.queue, i_number integer default null)
returns text language sql stable as $$
-- A name that is there, fit to stand in a statement, whatever the row of the queue says.
select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.oid = to_regclass(i_queue.queue_data_pfx || '_' || coalesce(i_number, i_queue.queue_cur_table))
$$;
comment on function pgque._event_table is 'One of the event tables of a queue; without a number the one that producers write to';

create or replace function pgque._event_tables(i_queue pgque.queue) returns setof text language sql stable as $$
select t from (select pgque._event_table(i_queue, n) from generate_series(0, i_queue.queue_ntables - 1) n) x (t)
where t is not null
$$;
comment on function pgque._event_tables is 'Event tables of a queue';

create or replace function pgque._is_read(i_table text, i_snapshot pg_snapshot)
returns boolean language plpgsql stable set enable_seqscan = off as $$
-- Not visible are those of transactions that were running or unborn at the snapshot.
declare v_unread boolean;
begin
    execute format('select exists (select from %1$s where ev_txid >= %2$L) or exists (select from %1$s where ev_txid = any (%3$L))',
        i_table, pg_snapshot_xmax(i_snapshot), array(select pg_snapshot_xip(i_snapshot))) into v_unread;
    return not v_unread;
end $$;
comment on function pgque._is_read is 'Whether every committed row of an event table is visible in a snapshot';

create or replace function pgque.tune_storage(i_queue_name text) returns integer language plpgsql strict as $$
-- Event tables are only appended to and truncated: vacuum has nothing to do there.
declare v_table text;
begin
    for v_table in select pgque._event_tables(q) from pgque.queue q where q.queue_name = i_queue_name loop
        execute format('alter table %s set (fillfactor = 100, autovacuum_enabled = off, '
            'toast.autovacuum_enabled = off)', v_table);
    end loop;
    return 1;
end $$;
comment on function pgque.tune_storage is 'Set the storage parameters of the event tables of a queue';

create or replace function pgque._create_event_tables(i_queue_id integer) returns void language plpgsql as $$
declare v_parent text := 'event_' || i_queue_id; v_table text;
begin
    execute format('create table pgque.%I () inherits (pgque.event_template)', v_parent);
    execute format('comment on table pgque.%I is %L', v_parent, 'Parent of the event tables of queue ' || i_queue_id);
    execute format('create sequence pgque.%I owned by pgque.%I.ev_id', v_parent || '_id_seq', v_parent);
    execute format('create sequence pgque.%I owned by pgque.%I.ev_id', v_parent || '_tick_seq', v_parent);
    for i in 0..2 loop
        v_table := v_parent || '_' || i;
        execute format('create table pgque.%I () inherits (pgque.%I)', v_table, v_parent);
        execute format('comment on table pgque.%I is %L', v_table, 'Events of queue ' || i_queue_id);
        execute format('alter table pgque.%I alter ev_id set default nextval(%L)',
            v_table, 'pgque.' || v_parent || '_id_seq');
        -- Windows are ranges of transactions; nack looks one event up.
        execute format('create index %I on pgque.%I (ev_txid)', v_table || '_txid_idx', v_table);
        execute format('create index %I on pgque.%I (ev_id)', v_table || '_id_idx', v_table);
    end loop;
end $$;
comment on function pgque._create_event_tables is 'Make the event tables and sequences of a queue';

create or replace function pgque.create_queue(i_queue_name text)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_id integer; v_prefix text;
begin
    if i_queue_name is null then raise exception 'Invalid NULL value'; end if;
    if octet_length(i_queue_name) > 57 then
        raise exception 'queue name too long: % bytes (max 57). pg_notify channel ''pgque_<queue_name>'' must fit in 63 bytes.',
            octet_length(i_queue_name);
    end if;
    if exists (select from pgque.queue where queue_name = i_queue_name) then return 0; end if;

    v_id := nextval('pgque.queue_queue_id_seq');
    v_prefix := 'pgque.event_' || v_id;
    insert into pgque.queue (queue_id, queue_name, queue_data_pfx, queue_event_seq, queue_tick_seq)
    values (v_id, i_queue_name, v_prefix, v_prefix || '_id_seq', v_prefix || '_tick_seq')
    on conflict on constraint queue_name_uq do nothing;
    if not found then return 0; end if;

    perform pgque._create_event_tables(v_id);
    perform pgque.tune_storage(i_queue_name);
    perform pgque.grant_perms(i_queue_name);
    perform pg_advisory_xact_lock(hashtext('pgque.code'));
    perform pgque._write_reading(q) from pgque.queue q where q.queue_id = v_id;
    perform pgque._write_dispatch();
    perform pgque._write_sending();
    insert into pgque.tick (tick_queue, tick_id, tick_event_seq)
    values (v_id, nextval((v_prefix || '_tick_seq')::regclass), 0);
    return 1;
end $$;
comment on function pgque.create_queue is 'Create a queue: 1, or 0 when it exists. Two creators at once: one waits and gets 0';

create or replace function pgque.drop_queue(x_queue_name text, x_force boolean)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
-- Subscriptions are locked first: a consumer at work holds its own row and may then
-- want the queue row (foreign keys), never the other way round.
declare v_queue pgque.queue; v_consumers integer[];
begin
    perform from pgque.subscription s join pgque.queue q on q.queue_id = s.sub_queue
    where q.queue_name = x_queue_name order by s.sub_consumer for update of s;
    perform from pgque.queue where queue_name = x_queue_name for update;
    v_queue := pgque._queue(x_queue_name, 'No such event queue');
    if not coalesce(x_force, false) and exists (select from pgque.subscription where sub_queue = v_queue.queue_id) then
        raise exception 'cannot drop queue, consumers still attached';
    end if;

    delete from pgque.retry_queue where ev_queue = v_queue.queue_id;
    with gone as (delete from pgque.subscription where sub_queue = v_queue.queue_id returning sub_consumer)
    select array_agg(sub_consumer) into v_consumers from gone;
    delete from pgque.tick where tick_queue = v_queue.queue_id;
    delete from pgque.queue where queue_id = v_queue.queue_id;
    perform pgque._forget_consumers(v_consumers);
    execute format('drop table if exists pgque.%I, %s', 'event_' || v_queue.queue_id,
        (select string_agg(t, ', ') from pgque._event_tables(v_queue) t));
    execute format('drop function if exists pgque._read_%1$s, pgque._find_%1$s', v_queue.queue_id);
    return 1;
end $$;
comment on function pgque.drop_queue(text, boolean) is
'Drop a queue with its events and dead letters; with force also its subscriptions. Waits for open transactions that used it';

create or replace function pgque.set_queue_config(x_queue_name text, x_param_name text, x_param_value text)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare
    v_type text := case
        when x_param_name in ('max_retries', 'ticker_max_count') then 'integer'
        when x_param_name in ('ticker_max_lag', 'ticker_idle_period', 'rotation_period') then 'interval'
        when x_param_name in ('ticker_paused', 'external_ticker') then 'boolean' end;
    v_bound text := case x_param_name when 'max_retries' then '>=' else '>' end;
    v_wrong text;
begin
    if x_queue_name is null or x_param_name is null then raise exception 'Invalid NULL value'; end if;
    perform pgque._queue(x_queue_name, 'No such event queue');
    if v_type is null then raise exception 'cannot change parameter "%s"', x_param_name; end if;
    if v_type <> 'boolean' then
        execute format('select v from (select $1::%1$s) x (v) where not v %2$s ''0''::%1$s', v_type, v_bound)
        into v_wrong using x_param_value;
    end if;
    if v_wrong is not null then
        raise exception 'set_queue_config: % must be % 0, got %', x_param_name, v_bound, v_wrong;
    end if;
    execute format('update pgque.queue set %I = %s where queue_name = $1', 'queue_' || x_param_name,
        case when x_param_value is null then 'default' else format('$2::%s', v_type) end)
    using x_queue_name, x_param_value;
    return 1;
end $$;
comment on function pgque.set_queue_config is 'Change one setting of a queue, named without the prefix queue_; NULL restores the default';

-- src/25_event_code.sql

-- Code that is written anew for the queues there are. SQL whose text is made at run
-- time is parsed and planned at each call, which costs more than all the rest of
-- sending or reading; written down in functions it is planned once per session.
-- A session that still runs the code of before writes to the table of before, where
-- readers find its events all the same.

create or replace function pgque._search_tree(i_variable text, i_keys text[], i_codes text[])
returns text language plpgsql strict as $$
declare v_middle integer := cardinality(i_keys) / 2;
begin
    if cardinality(i_keys) = 1 then return format(e'if %s = %s then\n%s\nend if;', i_variable, i_keys[1], i_codes[1]); end if;
    return format(e'if %s <= %s then\n%s\nelse\n%s\nend if;', i_variable, i_keys[v_middle],
        pgque._search_tree(i_variable, i_keys[:v_middle], i_codes[:v_middle]),
        pgque._search_tree(i_variable, i_keys[v_middle + 1:], i_codes[v_middle + 1:]));
end $$;
comment on function pgque._search_tree is 'Code that runs the piece of code that belongs to a key, after few comparisons; keys are literals in order';

create or replace function pgque._for_queue_id(i_code text) returns text language sql as $$
-- Code after this is for the others: queues beyond the first hundred.
select coalesce(pgque._search_tree('i_window.queue_id', array_agg(q.queue_id::text order by q.queue_id),
    array_agg(replace(i_code, '<id>', q.queue_id::text) order by q.queue_id)), '')
from (select queue_id from pgque.queue order by queue_id limit 100) q
$$;
comment on function pgque._for_queue_id is 'Code that does something for the queue of i_window';

create or replace function pgque._for_queue_name(i_variable text, i_code text) returns text language sql as $$
-- Code after this is for the others: queues beyond the first hundred, disabled or
-- unknown ones.
select coalesce(pgque._search_tree(format('%s collate "C"', i_variable),
    array_agg(quote_literal(q.queue_name) order by q.name),
    array_agg(replace(replace(i_code, '<table>', q.event_table), '<sequence>', quote_literal(q.queue_event_seq))
        order by q.name)), '')
from (
    select *, queue_name collate "C" as name, pgque._event_table(q) as event_table
    from pgque.queue q where not queue_disable_insert order by queue_id limit 100
) q where q.event_table is not null
$$;
comment on function pgque._for_queue_name is 'Code that does something with the current event table of the queue that a variable names';

create or replace function pgque._for_each_table(i_queue pgque.queue, i_code text) returns text language sql as $$
-- Empty tables are passed by, so that no lock on them hinders a rotation. Advisory
-- lock (table), shared: refused while a rotation that is not committed yet has
-- emptied the table, which it does only when nobody has to read it any more.
select string_agg(
    format('if pg_try_advisory_xact_lock_shared(%s) and pg_relation_size(%L::regclass) > 0 then %s end if;',
        hashtextextended(t, 0), t, replace(i_code, '<table>', t)), e'\n' order by t)
from pgque._event_tables(i_queue) t
$$;
comment on function pgque._for_each_table is 'Code that does something with each event table of a queue that may hold events';

create or replace function pgque._write_function(i_signature text, i_declare text, i_options text, i_body text)
returns void language plpgsql as $$
begin
    execute format('create or replace function pgque.%s language plpgsql %s as %L', i_signature, i_options,
        format(e'declare\n%s\nbegin\n%s\nend', i_declare, i_body));
end $$;
comment on function pgque._write_function is 'Write a function down, or write it anew';

create or replace function pgque._write_reading(i_queue pgque.queue) returns void language plpgsql as $$
-- Events that became visible from one snapshot to the other: those of transactions
-- begun in between, and those of transactions that ran at the first tick and had
-- ended at the second. The latter are named one by one: a range down to the oldest
-- running transaction would read everything again for each batch.
-- The plans are made on tables that may be empty then and huge later.
declare v_options text := 'set plan_cache_mode = force_generic_plan set enable_seqscan = off';
begin
    perform pgque._write_function(
        format('_read_%s(i_window pgque._window, i_limit bigint) returns setof pgque.event_template', i_queue.queue_id),
        $code$
            v_from xid8 := pg_snapshot_xmax(i_window.from_snapshot);
            v_to xid8 := pg_snapshot_xmax(i_window.to_snapshot);
            v_all_done boolean := pg_snapshot_xmin(i_window.to_snapshot) = v_to;
            v_late xid8[];
        $code$, v_options, $code$
            if pg_snapshot_xmin(i_window.from_snapshot) <> v_from then
                select array_agg(x.id) into v_late from pg_snapshot_xip(i_window.from_snapshot) x (id)
                where pg_visible_in_snapshot(x.id, i_window.to_snapshot);
            end if;
        $code$ || pgque._for_each_table(i_queue, $code$
            return query select * from <table>
            where ev_txid >= v_from and ev_txid < v_to and (ev_owner is null or ev_owner = i_window.sub_id)
                and (v_all_done or pg_visible_in_snapshot(ev_txid, i_window.to_snapshot)) limit i_limit;
            if v_late is not null then
                return query select * from <table>
                where ev_txid = any (v_late) and (ev_owner is null or ev_owner = i_window.sub_id) limit i_limit;
            end if;$code$));
    perform pgque._write_function(
        format('_find_%s(i_window pgque._window, i_event_id bigint) returns pgque.event_template', i_queue.queue_id),
        'v_event pgque.event_template;', v_options, pgque._for_each_table(i_queue, $code$
            select * into v_event from <table>
            where ev_id = i_event_id and (ev_owner is null or ev_owner = i_window.sub_id)
                and pg_visible_in_snapshot(ev_txid, i_window.to_snapshot)
                and not pg_visible_in_snapshot(ev_txid, i_window.from_snapshot);
            if found then return v_event; end if;$code$) || 'return v_event;');
    execute format($code$
        comment on function pgque._read_%1$s is 'Events of a window, in no order; with a limit, so many of each table';
        comment on function pgque._find_%1$s is 'Event of a window by its id, else NULL fields; one index probe per table';
        revoke all on function pgque._read_%1$s, pgque._find_%1$s from public$code$, i_queue.queue_id);
end $$;
comment on function pgque._write_reading is 'Write the functions that read the events of a queue';

create or replace function pgque._write_dispatch() returns void language plpgsql as $$
begin
    perform pgque._write_function('_read(i_window pgque._window, i_limit bigint) returns setof pgque.event_template', '', '',
        pgque._for_queue_id('return query select * from pgque."_read_<id>"(i_window, i_limit); return;')
        || $code$return query execute format('select * from pgque._read_%s($1, $2)', i_window.queue_id)
            using i_window, i_limit;$code$);
    perform pgque._write_function('_find(i_window pgque._window, i_event_id bigint) returns pgque.event_template',
        'v_event pgque.event_template;', '',
        pgque._for_queue_id('return pgque."_find_<id>"(i_window, i_event_id);')
        || $code$execute format('select * from pgque._find_%s($1, $2)', i_window.queue_id)
            into v_event using i_window, i_event_id;
            return v_event;$code$);
end $$;
comment on function pgque._write_dispatch is 'Write the functions that read the events of any window';

do $$
begin
    perform pgque._write_reading(q) from pgque.queue q;
    perform pgque._write_dispatch();
end $$;
comment on function pgque._read is 'Events of a window, in no order; with a limit, so many of each table';
comment on function pgque._find is 'Event of a window by its id, else NULL fields';

-- src/28_sending_code.sql

-- The functions that send events: written anew when a queue comes, goes, rotates, or
-- is opened or closed for events, so that a call neither looks the current table up
-- nor plans its insert.

create or replace function pgque._write_sending() returns void language plpgsql as $$
-- What each function that sends one event takes for type, data and extras.
declare v_function record;
begin
    for v_function in
        select * from (values
            ('insert_event(queue_name text, ev_type text, ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text)',
                'ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4'),
            ('send(queue_name text, payload jsonb)', $fields$'default', payload::text, null, null, null, null$fields$),
            ('send(queue_name text, type_name text, payload jsonb)', 'type_name, payload::text, null, null, null, null'),
            ('send(queue_name text, payload text)', $fields$'default', payload, null, null, null, null$fields$),
            ('send(queue_name text, type_name text, payload text)', 'type_name, payload, null, null, null, null')
        ) f (signature, fields)
    loop
        perform pgque._write_function(v_function.signature || ' returns bigint', 'v_id bigint;',
            'security definer set search_path = pgque, pg_catalog, pg_temp',
            pgque._for_queue_name('queue_name', format('v_id := nextval(<sequence>::regclass);'
                ' insert into <table> values (v_id, now(), pg_current_xact_id(), null, null, %s); return v_id;', v_function.fields))
            || format('return pgque.insert_event_raw(queue_name, null, now(), null, null, %s);', v_function.fields));
    end loop;
    perform pgque._write_function('_insert_events(i_queue text, i_type text, i_payloads text[]) returns bigint[]',
        'v_ids bigint[];', '', 'if cardinality(i_payloads) > 0 then ' || pgque._for_queue_name('i_queue', $code$
            v_ids := array(select nextval(<sequence>::regclass) from generate_series(1, cardinality(i_payloads)));
            insert into <table> select unnest(v_ids), now(), pg_current_xact_id(), null, null, i_type, unnest(i_payloads);
            return v_ids;$code$) || ' end if; return pgque._insert_events_raw(i_queue, i_type, i_payloads);');
end $$;
comment on function pgque._write_sending is 'Write the functions that send events';

create or replace function pgque._queue_changed()
returns trigger language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
-- Advisory lock (pgque.code): one writer at a time.
begin
    perform pg_advisory_xact_lock(hashtext('pgque.code'));
    perform pgque._write_sending();
    if tg_op = 'DELETE' then perform pgque._write_dispatch(); end if;
    return null;
end $$;
comment on function pgque._queue_changed is 'Keep the written code in step with the queues there are; create_queue() does so when the tables are made';

create or replace trigger queue_code
after delete or update of queue_cur_table, queue_disable_insert on pgque.queue
for each statement execute function pgque._queue_changed();

do $$ begin perform pgque._write_sending(); end $$;
comment on function pgque._insert_events is 'Append events in the order of an array; runs with the rights of its caller';
comment on function pgque.insert_event(text, text, text, text, text, text, text) is
'Append an event with its extra fields; it becomes readable after commit and the next tick';
comment on function pgque.send(text, jsonb) is 'Append an event of type default: JSON';
comment on function pgque.send(text, text, jsonb) is 'Append an event: JSON';
comment on function pgque.send(text, text) is 'Append an event of type default: text, kept byte for byte';
comment on function pgque.send(text, text, text) is 'Append an event: text, kept byte for byte';

-- src/30_producer.sql

-- Producers: append events to the current table of a queue. No lock is taken on
-- the queue; a producer that still sees an old current table writes there, and
-- readers find the event all the same. send() is in 28_sending_code.sql.

create or replace function pgque._refuse_disabled(i_queue pgque.queue, i_refusal text default 'Insert into queue disallowed')
returns void language plpgsql as $$
begin
    if i_queue.queue_disable_insert and current_setting('session_replication_role') <> 'replica' then
        raise exception '%', i_refusal;
    end if;
end $$;
comment on function pgque._refuse_disabled is 'Raise when a queue takes no new events';

create or replace function pgque.current_event_table(x_queue_name text) returns text language plpgsql as $$
declare v_queue pgque.queue := pgque._queue(x_queue_name, 'Event queue not found');
begin
    perform pgque._refuse_disabled(v_queue, 'Writing to queue disabled');
    return pgque._event_table(v_queue);
end $$;
comment on function pgque.current_event_table is 'Name of the table that producers write to';

create or replace function pgque.insert_event_raw(
    queue_name text, ev_id bigint, ev_time timestamptz, ev_owner integer, ev_retry integer, ev_type text,
    ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text
) returns bigint language plpgsql as $$
-- A sequence value is used up even for a given id: the ticker counts events by it.
declare v_queue pgque.queue := pgque._queue(queue_name); v_id bigint;
begin
    perform pgque._refuse_disabled(v_queue);
    v_id := nextval(v_queue.queue_event_seq::regclass);
    v_id := coalesce(insert_event_raw.ev_id, v_id);
    execute format('insert into %s values ($1, $2, pg_current_xact_id(), $3, $4, $5, $6, $7, $8, $9, $10)',
        pgque._event_table(v_queue))
    using v_id, ev_time, ev_owner, ev_retry, ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4;
    return v_id;
end $$;
comment on function pgque.insert_event_raw is 'Append one event with every field given';

create or replace function pgque._insert_events_raw(i_queue text, i_type text, i_payloads text[])
returns bigint[] language plpgsql as $$
declare v_queue pgque.queue; v_ids bigint[];
begin
    if i_payloads is null then raise exception 'payloads must not be null'; end if;
    if cardinality(i_payloads) = 0 then return '{}'; end if;
    v_queue := pgque._queue(i_queue);
    perform pgque._refuse_disabled(v_queue);
    v_ids := array(select nextval(v_queue.queue_event_seq::regclass) from generate_series(1, cardinality(i_payloads)));
    execute format('insert into %s select unnest($1), now(), pg_current_xact_id(), null, null, $2, unnest($3)',
        pgque._event_table(v_queue)) using v_ids, i_type, i_payloads;
    return v_ids;
end $$;
comment on function pgque._insert_events_raw is 'Append events in the order of an array through dynamic SQL, or say why not';

-- src/40_ticker.sql

-- The ticker: decides when a queue is due and records a snapshot. Ticks of one
-- queue are taken one at a time under an advisory lock that lives until commit;
-- the snapshot is that of a statement begun after the lock was obtained.
-- A pass that finds nothing due writes nothing and uses no transaction id.

create or replace function pgque._refuse_old_snapshot() returns void language plpgsql as $$
begin
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        raise exception 'ticks must be made in a READ COMMITTED transaction' using errcode = 'invalid_transaction_state';
    end if;
end $$;
comment on function pgque._refuse_old_snapshot() is 'Raise when the transaction keeps one snapshot: its ticks could lie before committed ones';

create or replace function pgque._tick_snapshot() returns pg_snapshot language sql stable as $$
-- A snapshot does not list its own transaction as running. Listed here, so that
-- events sent by the transaction that ticks come with the next tick, always.
select case
    when c.own is null or c.own >= pg_snapshot_xmax(c.snapshot) then c.snapshot
    else format('%s:%s:%s',
        least(pg_snapshot_xmin(c.snapshot), c.own),
        pg_snapshot_xmax(c.snapshot),
        (select string_agg(x.id::text, ',' order by x.id)
         from (select pg_snapshot_xip(c.snapshot) union select c.own) x (id)))::pg_snapshot
end
from (select pg_current_snapshot(), pg_current_xact_id_if_assigned()) c (snapshot, own)
$$;
comment on function pgque._tick_snapshot is 'Snapshot of this statement, with the own transaction shown as running';

create or replace function pgque._due_queues(i_queue_ids integer[]) returns table (
    queue_id integer, queue_name text, next_tick_id bigint, event_seq bigint, old_snapshot pg_snapshot, new_events bigint
) language sql stable as $$
-- The only place that decides when to tick. NULL stands for all queues.
-- No transaction id is asked for: an idle pass must not use one up.
select q.queue_id, q.queue_name, coalesce(t1.tick_id, 0) + 1, d.event_seq, t1.tick_snapshot, d.new_events
from pgque.queue q
left join lateral (select * from pgque.tick t where t.tick_queue = q.queue_id order by t.tick_id desc limit 1) t1 on true
left join lateral (
    select t.tick_time, t.tick_event_seq from pgque.tick t
    where t.tick_queue = q.queue_id and t.tick_id < t1.tick_id order by t.tick_id desc limit 1
) t0 on true
cross join lateral (select coalesce(pg_sequence_last_value(to_regclass(q.queue_event_seq)), 0) as event_seq offset 0) s
cross join lateral (
    select s.event_seq, s.event_seq - t1.tick_event_seq as new_events, now() - t1.tick_time as lag offset 0
) d
where not q.queue_external_ticker and not q.queue_ticker_paused and (i_queue_ids is null or q.queue_id = any (i_queue_ids))
    and case
        when t1.tick_id is null or t0.tick_time is null then true
        when d.new_events > 0 then d.new_events >= q.queue_ticker_max_count or d.lag >= q.queue_ticker_max_lag
        -- Events of transactions that ran while the newest tick was taken wait for no idle period.
        when d.lag >= q.queue_ticker_max_lag and t1.tick_event_seq > t0.tick_event_seq
            and not pgque._is_read(pgque._event_table(q), t1.tick_snapshot) then true
        else d.lag >= q.queue_ticker_max_lag / 2
            and (d.lag >= 2 * (t1.tick_time - t0.tick_time) or d.lag >= q.queue_ticker_idle_period)
    end $$;
comment on function pgque._due_queues(integer[]) is 'Queues that are to be ticked now, in this statement''s snapshot';

create or replace function pgque._check_tick_state(i_snapshot pg_snapshot, i_new_events bigint, i_event_seq bigint)
returns void language plpgsql as $$
declare v_next_xid xid8 := pg_snapshot_xmax(pg_current_snapshot());
begin
    if pg_snapshot_xmin(i_snapshot) > v_next_xid then
        raise exception 'Invalid PgQ state: old xmin=%, old xmax=%, cur txid=%',
            pg_snapshot_xmin(i_snapshot), pg_snapshot_xmax(i_snapshot), v_next_xid
            using hint = 'After a restore into another cluster run pgque.rebase().';
    end if;
    if pg_snapshot_xmax(i_snapshot) > v_next_xid then
        raise warning 'Dubious PgQ state: old xmax=%, cur txid=%', pg_snapshot_xmax(i_snapshot), v_next_xid;
    end if;
    if i_new_events < 0 then
        raise warning 'Negative new_events?  old=% cur=%', i_event_seq - i_new_events, i_event_seq;
    end if;
end $$;
comment on function pgque._check_tick_state(pg_snapshot, bigint, bigint) is 'Raise when the newest tick lies in the future of this cluster';

create or replace function pgque._tick_queues(i_queue_ids integer[])
returns table (queue_id integer, tick_id bigint) language plpgsql as $$
-- Advisory lock (pgque.tick, queue): held by another ticker means that the queue
-- is being ticked, so it is skipped. The key share keeps drop_queue away.
declare v_locked integer[]; v_due record;
begin
    with candidate as materialized (
        select q.queue_id from pgque.queue q where q.queue_id = any (i_queue_ids)
        order by q.queue_name for key share skip locked
    )
    select array_agg(c.queue_id) into v_locked from candidate c
    where pg_try_advisory_xact_lock(hashtext('pgque.tick'), c.queue_id);

    for v_due in select * from pgque._due_queues(v_locked) d where v_locked is not null order by d.queue_name loop
        perform pgque._check_tick_state(v_due.old_snapshot, v_due.new_events, v_due.event_seq);
        insert into pgque.tick (tick_queue, tick_id, tick_snapshot, tick_event_seq)
        select v_due.queue_id, greatest(nextval(q.queue_tick_seq::regclass), v_due.next_tick_id),
            pgque._tick_snapshot(), v_due.event_seq
        from pgque.queue q where q.queue_id = v_due.queue_id
        returning tick.tick_queue, tick.tick_id into queue_id, tick_id;
        perform pg_notify('pgque_' || v_due.queue_name, tick_id::text);
        return next;
    end loop;
end $$;
comment on function pgque._tick_queues(integer[]) is 'Tick those of the given queues that are due; any failure ends the call';

create or replace function pgque.ticker()
returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_due integer[]; v_id integer; v_ticks bigint := 0;
begin
    begin
        v_due := array(select d.queue_id from pgque._due_queues(null) d order by d.queue_name);
        if v_due = '{}' then return 0; end if;
        perform pgque._refuse_old_snapshot();
        return (select count(*) from pgque._tick_queues(v_due));
    exception when others then
        if sqlstate = '25000' then raise; end if;
        -- One queue is broken, or being dropped: go on one by one, so that the others tick.
        v_due := coalesce(v_due, array(select q.queue_id from pgque.queue q
            where not q.queue_external_ticker and not q.queue_ticker_paused order by q.queue_name));
        foreach v_id in array v_due loop
            begin
                v_ticks := v_ticks + (select count(*) from pgque._tick_queues(array[v_id]));
            exception when others then
                raise warning 'pgque.ticker: queue % skipped: %',
                    (select q.queue_name from pgque.queue q where q.queue_id = v_id), sqlerrm;
            end;
        end loop;
    end;
    return v_ticks;
end $$;
comment on function pgque.ticker() is 'Tick every queue that is due; the number of ticks made. Any number may run; a failing queue is skipped with a warning';

create or replace function pgque.ticker(i_queue_name text)
returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_queue pgque.queue := pgque._queue(i_queue_name, 'no such queue');
begin
    if v_queue.queue_external_ticker then raise exception 'This queue has external tick source.'; end if;
    if v_queue.queue_ticker_paused then raise exception 'Ticker has been paused for this queue'; end if;
    perform pgque._refuse_old_snapshot();
    return (select t.tick_id from pgque._tick_queues(array[v_queue.queue_id]) t);
end $$;
comment on function pgque.ticker(text) is 'Tick one queue when it is due: the tick id, else NULL';

-- src/45_ticker_control.sql

-- Ticks on demand: forced, from an outside source, or in a loop.

create or replace function pgque._queue_to_tick(i_queue_name text, i_is_external boolean)
returns pgque.queue language plpgsql as $$
declare v_queue pgque.queue := pgque._queue(i_queue_name);
begin
    if v_queue.queue_ticker_paused then
        raise exception 'queue % is paused (queue_ticker_paused = true)', i_queue_name;
    end if;
    if i_is_external and not v_queue.queue_external_ticker then
        raise exception 'queue % is not configured for external ticker (queue_external_ticker = false); use pgque.ticker(queue) instead',
            i_queue_name;
    end if;
    if v_queue.queue_external_ticker and not i_is_external then
        raise exception 'queue % is configured for external ticker; force_tick is meaningless — push ticks via pgque.ticker(queue, tick_id, ts, event_seq)',
            i_queue_name;
    end if;
    return v_queue;
end $$;
comment on function pgque._queue_to_tick is 'Queue whose ticks come from outside, or from ticker(); raises when it is not so';

create or replace function pgque.ticker(
    i_queue_name text, i_tick_id bigint, i_orig_timestamp timestamptz, i_event_seq bigint
) returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_queue pgque.queue := pgque._queue_to_tick(i_queue_name, true); v_last pgque.tick;
begin
    perform pgque._refuse_old_snapshot();
    -- The same lock as in _tick_queues(), here waited for.
    perform pg_advisory_xact_lock(hashtext('pgque.tick'), v_queue.queue_id);
    select * into v_last from pgque.tick where tick_queue = v_queue.queue_id order by tick_id desc limit 1;
    if i_tick_id <= v_last.tick_id then
        raise exception 'external ticker tick_id must be strictly greater than current max (% <= %)',
            i_tick_id, v_last.tick_id;
    end if;
    if i_event_seq < v_last.tick_event_seq then
        raise exception 'external ticker event_seq must be >= previous tick (% < %)', i_event_seq, v_last.tick_event_seq;
    end if;
    insert into pgque.tick (tick_queue, tick_id, tick_time, tick_snapshot, tick_event_seq)
    values (v_queue.queue_id, i_tick_id, i_orig_timestamp, pgque._tick_snapshot(), i_event_seq);
    perform setval(v_queue.queue_tick_seq::regclass, i_tick_id);
    perform pg_notify('pgque_' || i_queue_name, i_tick_id::text);
    return i_tick_id;
end $$;
comment on function pgque.ticker(text, bigint, timestamptz, bigint) is 'Record a tick that an outside source gives, with the snapshot of now';

create or replace function pgque.force_next_tick(i_queue_name text)
returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_queue pgque.queue := pgque._queue_to_tick(i_queue_name, false);
begin
    perform setval(v_queue.queue_event_seq::regclass, coalesce(pg_sequence_last_value(v_queue.queue_event_seq::regclass), 0)
        + v_queue.queue_ticker_max_count::bigint * 2 + 1000);
    return (select max(tick_id) from pgque.tick where tick_queue = v_queue.queue_id);
end $$;
comment on function pgque.force_next_tick is 'Make the next ticker() call tick this queue; returns the newest tick there is';

create or replace function pgque.set_tick_period_ms(p_period_ms integer)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    if p_period_ms is null or p_period_ms not between 1 and 1000 or 1000 % p_period_ms <> 0 then
        raise exception 'tick_period_ms must be an exact divisor of 1000 between 1 and 1000 (got %)',
            coalesce(p_period_ms::text, 'NULL');
    end if;
    update pgque.config set tick_period_ms = p_period_ms;
    return p_period_ms;
end $$;
comment on function pgque.set_tick_period_ms(integer) is 'Set the pause of ticker_loop()';

create or replace procedure pgque.ticker_loop() language plpgsql as $$
declare
    v_period integer := (select tick_period_ms from pgque.config);
    v_start timestamptz := clock_timestamp();
    v_wait double precision;
begin
    for i in 1..1000 / v_period loop
        perform pgque.ticker();
        commit;
        v_wait := extract(epoch from v_start - clock_timestamp()) + i * v_period / 1000.0;
        exit when v_wait < -1;
        perform pg_sleep(greatest(v_wait, 0));
    end loop;
end $$;
comment on procedure pgque.ticker_loop is 'Run ticker() for about one second, committing after each pass; CALL it outside a transaction';

-- src/50_batches.sql

-- Batches: the window between two ticks, opened for one consumer at a time.
-- Which events belong to it is computed from the two snapshots at each read;
-- nothing is stored but the cursor.

create or replace function pgque._batch(i_batch_id bigint, i_lock boolean default false)
returns pgque._window language plpgsql as $$
-- The lock is held until commit, so that no takeover slips between a nack and its ack.
declare v_window pgque._window;
begin
    if i_lock then perform from pgque.subscription where sub_batch = i_batch_id for no key update; end if;
    select * into v_window from pgque._window w where w.batch_id = i_batch_id;
    return v_window;
end $$;
comment on function pgque._batch is 'Open batch; NULL fields when there is none';

create or replace function pgque._readable_batch(i_batch_id bigint) returns pgque._window language plpgsql as $$
declare v_window pgque._window := pgque._batch(i_batch_id);
begin
    if v_window.batch_id is null then raise exception 'batch not found: %', i_batch_id; end if;
    if v_window.from_snapshot is null or v_window.to_snapshot is null then
        raise exception 'Cannot find data for batch %', i_batch_id;
    end if;
    return v_window;
end $$;
comment on function pgque._readable_batch is 'Open batch; raises when there is none, or a tick of it is gone';

create or replace function pgque.find_tick_helper(
    i_queue_id integer, i_prev_tick_id bigint, i_prev_tick_time timestamptz, i_prev_tick_seq bigint,
    i_min_count bigint, i_min_interval interval, out next_tick_id bigint, out next_tick_time timestamptz,
    out next_tick_seq bigint
) language sql stable as $$
-- The newest tick, if it fulfils a wish; from a backlog of more than twice the wish
-- the first tick that fulfils it.
select t.tick_id, t.tick_time, t.tick_event_seq
from (select * from pgque.tick where tick_queue = i_queue_id order by tick_id desc limit 1) newest
join pgque.tick t on t.tick_queue = i_queue_id and t.tick_id > i_prev_tick_id and (t.tick_id = newest.tick_id
    or newest.tick_event_seq - i_prev_tick_seq > 2 * i_min_count or newest.tick_time - i_prev_tick_time > 2 * i_min_interval)
where t.tick_event_seq - i_prev_tick_seq >= i_min_count or t.tick_time - i_prev_tick_time >= i_min_interval
order by t.tick_id limit 1
$$;
comment on function pgque.find_tick_helper is 'Tick at which a batch of a wanted size or age ends; NULL when there is not enough yet';

create or replace function pgque._next_tick(
    i_queue_id integer, i_from_tick bigint, i_min_lag interval, i_min_count bigint, i_min_interval interval
) returns bigint language plpgsql as $$
-- Ticks between which no event was sent are passed over in one window: it ends at
-- the first tick with a new event count, else at the newest one. That loses
-- nothing, for a window may always be joined with the next.
declare v_id bigint; v_time timestamptz;
begin
    if i_min_count is not null or i_min_interval is not null then
        select h.next_tick_id, h.next_tick_time into v_id, v_time from pgque.tick f
        cross join pgque.find_tick_helper(
            i_queue_id, f.tick_id, f.tick_time, f.tick_event_seq, i_min_count, i_min_interval) h
        where f.tick_queue = i_queue_id and f.tick_id = i_from_tick;
    else
        select n.tick_id, n.tick_time into v_id, v_time from pgque.tick f
        cross join lateral (
            select * from pgque.tick t
            where t.tick_queue = f.tick_queue and t.tick_id > f.tick_id and t.tick_event_seq <> f.tick_event_seq
            order by t.tick_id limit 1
        ) n
        where f.tick_queue = i_queue_id and f.tick_id = i_from_tick;
        if not found then
            select n.tick_id, n.tick_time into v_id, v_time from pgque.tick n
            where n.tick_queue = i_queue_id and n.tick_id > i_from_tick order by n.tick_id desc limit 1;
        end if;
    end if;
    return case when now() - v_time < i_min_lag then null else v_id end;
end $$;
comment on function pgque._next_tick is 'Tick at which the next window of a cursor ends; NULL when there is none yet';

-- src/52_reading.sql

-- Opening, reading and finishing the batches of a consumer.

create or replace function pgque._find_subscription(i_queue text, i_consumer text)
returns pgque.subscription language plpgsql as $$
declare v_sub pgque.subscription;
begin
    select s.* into v_sub from pgque.queue q
    join pgque.subscription s on s.sub_queue = q.queue_id
    join pgque.consumer c on c.co_id = s.sub_consumer
    where q.queue_name = i_queue and c.co_name = i_consumer;
    return v_sub;
end $$;
comment on function pgque._find_subscription is 'Subscription by names, not locked; NULL fields when there is none';

create or replace function pgque._refuse_subscription(i_sub pgque.subscription, i_queue text, i_consumer text)
returns void language plpgsql as $$
begin
    if i_sub.sub_id is null then raise exception 'Not subscriber to queue: %/%', i_queue, i_consumer; end if;
    if i_sub.sub_role = 'coop_main' then
        raise exception 'consumer % on queue % is a cooperative main consumer; use cooperative receive/next_batch with a subconsumer',
            i_consumer, i_queue;
    end if;
    raise exception 'consumer % on queue % is a cooperative subconsumer; use receive_coop / next_batch (cooperative form) instead of the legacy 5-arg next_batch_custom',
        i_consumer, i_queue;
end $$;
comment on function pgque._refuse_subscription is 'Say why a subscription cannot be read as a normal one';

create or replace function pgque._open_batch(
    i_queue text, i_consumer text, i_min_lag interval, i_min_count integer, i_min_interval interval
) returns pgque._window language plpgsql as $$
-- Looks without any lock, then takes what it saw, unless that has changed: then it
-- looks again. So an idle poll leaves no trace, and a session that waited for
-- another one sees the cursor and the ticks that belong together.
declare v_sub pgque.subscription; v_window pgque._window; v_next_tick bigint;
begin
    loop
        v_sub := pgque._find_subscription(i_queue, i_consumer);
        if v_sub.sub_role is distinct from 'normal' then
            perform pgque._refuse_subscription(v_sub, i_queue, i_consumer);
        end if;
        if v_sub.sub_batch is not null then
            perform from pgque.subscription
            where sub_queue = v_sub.sub_queue and sub_consumer = v_sub.sub_consumer and sub_batch = v_sub.sub_batch
            for no key update;
        else
            v_next_tick := pgque._next_tick(v_sub.sub_queue, v_sub.sub_last_tick, i_min_lag, i_min_count, i_min_interval);
            exit when v_next_tick is null;
            update pgque.subscription
            set sub_batch = nextval('pgque.batch_id_seq'), sub_next_tick = v_next_tick, sub_active = clock_timestamp()
            where sub_queue = v_sub.sub_queue and sub_consumer = v_sub.sub_consumer
                and sub_batch is null and sub_last_tick = v_sub.sub_last_tick and sub_role = 'normal'
            returning sub_batch into v_sub.sub_batch;
        end if;
        exit when found;
    end loop;
    select * into v_window from pgque._window w where w.batch_id = v_sub.sub_batch;
    if v_window.batch_id is not null and (v_window.from_snapshot is null or v_window.to_snapshot is null)
        or v_window.batch_id is null and not exists (
            select from pgque.tick where tick_queue = v_sub.sub_queue and tick_id = v_sub.sub_last_tick)
    then
        raise exception 'PgQ corruption: Consumer % on queue % does not see tick %',
            i_consumer, i_queue, v_sub.sub_last_tick;
    end if;
    return v_window;
end $$;
comment on function pgque._open_batch is 'Open the next batch, or describe the open one; NULL fields when there is none';

create or replace function pgque.next_batch_custom(
    i_queue_name text, i_consumer_name text, i_min_lag interval, i_min_count integer, i_min_interval interval,
    out batch_id bigint, out cur_tick_id bigint, out prev_tick_id bigint, out cur_tick_time timestamptz,
    out prev_tick_time timestamptz, out cur_tick_event_seq bigint, out prev_tick_event_seq bigint
) language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    select w.batch_id, w.to_tick, w.from_tick, w.to_time, w.from_time, w.to_seq, w.from_seq
    into batch_id, cur_tick_id, prev_tick_id, cur_tick_time, prev_tick_time, cur_tick_event_seq, prev_tick_event_seq
    from pgque._open_batch(i_queue_name, i_consumer_name, i_min_lag, i_min_count, i_min_interval) w;
end $$;
comment on function pgque.next_batch_custom(text, text, interval, integer, interval) is
'Open the next batch of a wanted age or size, or give the open one again; NULL when there is none. A second session of the same consumer waits for the commit of the first';

create or replace function pgque.next_batch_info(
    i_queue_name text, i_consumer_name text, out batch_id bigint, out cur_tick_id bigint, out prev_tick_id bigint,
    out cur_tick_time timestamptz, out prev_tick_time timestamptz, out cur_tick_event_seq bigint,
    out prev_tick_event_seq bigint
) language sql as $$ select * from pgque.next_batch_custom(i_queue_name, i_consumer_name, null, null, null) $$;
comment on function pgque.next_batch_info is 'Open the next batch and describe it';

create or replace function pgque.get_batch_events(
    x_batch_id bigint, out ev_id bigint, out ev_time timestamptz, out ev_txid bigint, out ev_retry integer,
    out ev_type text, out ev_data text, out ev_extra1 text, out ev_extra2 text, out ev_extra3 text, out ev_extra4 text
) returns setof record language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    return query
    select e.ev_id, e.ev_time, e.ev_txid::text::bigint, e.ev_retry, e.ev_type, e.ev_data,
        e.ev_extra1, e.ev_extra2, e.ev_extra3, e.ev_extra4
    from pgque._read(pgque._readable_batch(x_batch_id), null) e order by e.ev_id;
end $$;
comment on function pgque.get_batch_events is 'All events of an open batch in the order of their ids; may be read through a cursor in pages';

create or replace function pgque.get_batch_cursor(
    i_batch_id bigint, i_cursor_name text, i_quick_limit integer, i_extra_where text, out ev_id bigint,
    out ev_time timestamptz, out ev_txid bigint, out ev_retry integer, out ev_type text, out ev_data text,
    out ev_extra1 text, out ev_extra2 text, out ev_extra3 text, out ev_extra4 text
) returns setof record language plpgsql as $$
declare v_cursor refcursor := i_cursor_name;
begin
    open v_cursor no scroll for execute format('select * from pgque.get_batch_events(%s) where %s',
        i_batch_id, coalesce(i_extra_where, 'true'));
    for i in 1..i_quick_limit loop
        fetch v_cursor into ev_id, ev_time, ev_txid, ev_retry, ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4;
        exit when not found;
        return next;
    end loop;
end $$;
comment on function pgque.get_batch_cursor(bigint, text, integer, text) is 'Open a named cursor over a batch, narrowed by a piece of SQL, and return its first rows';

create or replace function pgque.ack(i_batch_id bigint)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    update pgque.subscription
    set sub_last_tick = case when sub_role = 'normal' then sub_next_tick end, sub_next_tick = null, sub_batch = null,
        sub_active = clock_timestamp()
    where sub_batch = i_batch_id and sub_role <> 'coop_main';
    if found then return 1; end if;
    if exists (select from pgque.subscription where sub_batch = i_batch_id) then
        raise exception 'cannot finish cooperative main consumer batch % as normal active consumer', i_batch_id;
    end if;
    raise warning 'finish_batch: batch % not found', i_batch_id;
    return 0;
end $$;
comment on function pgque.ack is
'Finish a whole batch, also events never read, and move the cursor: 1, or 0 with a warning when the batch is no longer open, as after a takeover';

create or replace function pgque._refuse_overflow(i_function text, i_count bigint, i_max_return integer)
returns void language plpgsql as $$
begin
    if i_count > i_max_return then
        raise exception 'pgque.%: batch exceeds max_return of %', i_function, i_max_return
            using errcode = 'program_limit_exceeded',
                hint = 'Retry with a larger resource-safe max_return to receive the complete batch. '
                    'Do not acknowledge after this error.';
    end if;
end $$;
comment on function pgque._refuse_overflow is 'Raise when a batch is larger than the caller allows';

create or replace function pgque.receive(i_queue text, i_consumer text, i_max_return integer default 100)
returns setof pgque.message language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
-- Asks for one event more than allowed: an overflow is noticed cheaply.
declare v_batch pgque._window; v_count bigint;
begin
    if i_max_return < 1 then raise exception 'pgque.receive: max_return must be >= 1, got %', i_max_return; end if;
    loop
        v_batch := pgque._open_batch(i_queue, i_consumer, null, null, null);
        exit when v_batch.batch_id is null;
        return query
        select e.ev_id, v_batch.batch_id, e.ev_type, e.ev_data, e.ev_retry, e.ev_time,
            e.ev_extra1, e.ev_extra2, e.ev_extra3, e.ev_extra4
        from pgque._read(v_batch, i_max_return::bigint + 1) e order by e.ev_id limit i_max_return::bigint + 1;
        get diagnostics v_count = row_count;
        perform pgque._refuse_overflow('receive', v_count, i_max_return);
        exit when v_count > 0;
        perform pgque.ack(v_batch.batch_id);
    end loop;
end $$;
comment on function pgque.receive is
'Whole next batch, or the open one again; empty windows are finished on the way. A batch above max_return raises 54000 and changes nothing; NULL is no limit';

-- src/55_consumers.sql

-- Consumers: subscribe, unsubscribe.

create or replace function pgque._consumer_id(i_consumer text) returns integer language plpgsql as $$
-- The row is locked only against deletion, so that consumers with one name on
-- many queues do not wait for each other.
declare v_id integer;
begin
    loop
        select co_id into v_id from pgque.consumer where co_name = i_consumer for key share;
        if found then return v_id; end if;
        insert into pgque.consumer (co_name) values (i_consumer) on conflict do nothing;
    end loop;
end $$;
comment on function pgque._consumer_id is 'Id of a consumer, made when new';

create or replace function pgque._forget_consumers(i_consumer_ids integer[]) returns void language plpgsql as $$
-- A row that somebody else holds is being subscribed again and stays.
declare v_ids integer[];
begin
    with idle as (
        select c.co_id from pgque.consumer c where c.co_id = any (i_consumer_ids) order by c.co_id for update skip locked
    )
    select array_agg(co_id) into v_ids from idle;
    delete from pgque.consumer c
    where c.co_id = any (v_ids) and not exists (select from pgque.subscription s where s.sub_consumer = c.co_id);
end $$;
comment on function pgque._forget_consumers is 'Delete consumers that have no subscription left, and with them their dead letters';

create or replace function pgque.register_consumer_at(x_queue_name text, x_consumer_name text, x_tick_pos bigint)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
-- The lock on the tick keeps a rotation from deleting it before the cursor on it
-- is committed.
declare v_queue_id integer; v_consumer_id integer; v_tick_id bigint;
begin
    select queue_id into v_queue_id from pgque.queue where queue_name = x_queue_name for key share;
    if not found then raise exception 'Event queue not created yet'; end if;
    v_consumer_id := pgque._consumer_id(x_consumer_name);
    select tick_id into v_tick_id from pgque.tick
    where tick_queue = v_queue_id and tick_id = coalesce(x_tick_pos, tick_id) order by tick_id desc limit 1 for key share;
    if not found and x_tick_pos is not null then raise exception 'cannot reposition, tick not found: %', x_tick_pos; end if;
    if not found then raise exception 'No ticks for this queue.  Please run ticker on database.'; end if;

    insert into pgque.subscription (sub_queue, sub_consumer, sub_last_tick)
    values (v_queue_id, v_consumer_id, v_tick_id) on conflict do nothing;
    if found then return 1; end if;
    if x_tick_pos is not null then
        update pgque.subscription
        set sub_last_tick = v_tick_id, sub_batch = null, sub_next_tick = null, sub_active = clock_timestamp()
        where sub_queue = v_queue_id and sub_consumer = v_consumer_id and sub_role = 'normal';
        if not found then
            raise exception 'cannot reposition cooperative consumer % on queue %', x_consumer_name, x_queue_name;
        end if;
    end if;
    return 0;
end $$;
comment on function pgque.register_consumer_at is 'Subscribe at a tick, or move an existing cursor there and drop its open batch: 1 when new';

create or replace function pgque.unregister_consumer(x_queue_name text, x_consumer_name text)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_sub pgque.subscription := pgque._find_subscription(x_queue_name, x_consumer_name); v_is_busy boolean;
begin
    select * into v_sub from pgque.subscription
    where sub_queue = v_sub.sub_queue and sub_consumer = v_sub.sub_consumer for update;
    if not found then return 0; end if;
    if v_sub.sub_role = 'coop_member' and v_sub.sub_batch is not null then
        raise exception 'cannot unregister active cooperative subconsumer without forced batch handling';
    end if;
    if v_sub.sub_role = 'coop_member' then return pgque._remove_member(v_sub); end if;
    select bool_or(sub_batch is not null) into v_is_busy from pgque.subscription
    where sub_queue = v_sub.sub_queue and sub_id = v_sub.sub_id and sub_role = 'coop_member';
    if v_is_busy then raise exception 'cannot unregister cooperative consumer with active subconsumer batches'; end if;
    if v_is_busy is not null then
        raise exception 'cannot unregister cooperative main consumer with registered subconsumers';
    end if;

    delete from pgque.retry_queue where ev_queue = v_sub.sub_queue and ev_owner = v_sub.sub_id;
    delete from pgque.subscription where sub_queue = v_sub.sub_queue and sub_consumer = v_sub.sub_consumer;
    perform pgque._forget_consumers(array[v_sub.sub_consumer]);
    return 1;
end $$;
comment on function pgque.unregister_consumer is 'Unsubscribe: pending retries go, and with the last subscription also the dead letters. 0 when not subscribed';

-- src/60_retry.sql

-- Retries: an event that a consumer could not handle waits in retry_queue and is
-- then written again for that subscription only, with its id and a higher count.

create or replace function pgque._retry_event(
    i_batch pgque._window, i_event pgque.event_template, i_retry_after timestamptz
) returns integer language plpgsql as $$
begin
    insert into pgque.retry_queue values (
        i_retry_after, i_batch.queue_id, i_event.ev_id, i_event.ev_time, null, i_batch.sub_id,
        coalesce(i_event.ev_retry, 0) + 1, i_event.ev_type, i_event.ev_data,
        i_event.ev_extra1, i_event.ev_extra2, i_event.ev_extra3, i_event.ev_extra4
    ) on conflict do nothing;
    return found::integer;
end $$;
comment on function pgque._retry_event is 'Put an event into the retry queue: 1, or 0 when it is there already';

create or replace function pgque._bury_event(i_batch pgque._window, i_event pgque.event_template, i_reason text)
returns void language plpgsql as $$
-- Members of a group come and go: their dead letters belong to the main consumer.
begin
    insert into pgque.dead_letter (
        dl_queue_id, dl_consumer_id, dl_reason, ev_id, ev_time, ev_txid, ev_retry,
        ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4
    )
    select s.sub_queue, s.sub_consumer, i_reason, i_event.ev_id, i_event.ev_time, i_event.ev_txid, i_event.ev_retry,
        i_event.ev_type, i_event.ev_data, i_event.ev_extra1, i_event.ev_extra2, i_event.ev_extra3, i_event.ev_extra4
    from pgque.subscription s
    where s.sub_queue = i_batch.queue_id and s.sub_id = i_batch.sub_id and s.sub_role <> 'coop_member'
    on conflict do nothing;
end $$;
comment on function pgque._bury_event is 'Make an event a dead letter, once per consumer';

create or replace function pgque._fail_event(
    i_batch pgque._window, i_event pgque.event_template, i_retry_after timestamptz, i_reason text
) returns void language plpgsql as $$
begin
    if coalesce(i_event.ev_retry, 0)
        >= (select coalesce(q.queue_max_retries, 5) from pgque.queue q where q.queue_id = i_batch.queue_id)
    then
        perform pgque._bury_event(i_batch, i_event, i_reason);
    else
        perform pgque._retry_event(i_batch, i_event, i_retry_after);
    end if;
end $$;
comment on function pgque._fail_event is 'Retry an event, or make it a dead letter when its retries ran out: the rule for nack and for removed members';

create or replace function pgque.nack(
    i_batch_id bigint, i_msg pgque.message, i_retry_after interval default '00:01:00', i_reason text default null
) returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
-- Of the message only the id counts: everything else is read from the event.
declare v_batch pgque._window := pgque._batch(i_batch_id, true); v_event pgque.event_template;
begin
    if v_batch.batch_id is null then raise exception 'batch not found: %', i_batch_id; end if;
    v_event := pgque._find(v_batch, i_msg.msg_id);
    if v_event.ev_id is null then raise exception 'msg_id % not found in batch %', i_msg.msg_id, i_batch_id; end if;
    perform pgque._fail_event(v_batch, v_event,
        now() + make_interval(secs => round(extract(epoch from coalesce(i_retry_after, '1 minute')))::double precision),
        coalesce(i_reason, 'max retries exceeded'));
    return 1;
end $$;
comment on function pgque.nack is
'Send one message of an open batch back for later, or to the dead letters when its retries ran out. The batch stays open: ack it in the same transaction';

create or replace function pgque.event_retry(x_batch_id bigint, x_event_id bigint, x_retry_time timestamptz)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_batch pgque._window := pgque._batch(x_batch_id, true); v_event pgque.event_template;
begin
    if v_batch.batch_id is not null then v_event := pgque._find(pgque._readable_batch(x_batch_id), x_event_id); end if;
    if v_event.ev_id is null then raise exception 'event not found'; end if;
    return pgque._retry_event(v_batch, v_event, x_retry_time);
end $$;
comment on function pgque.event_retry(bigint, bigint, timestamptz) is 'Retry one event at a time, whatever its count: 1, or 0 when it waits already';

create or replace function pgque.event_retry_raw(
    x_queue text, x_consumer text, x_retry_after timestamptz, x_ev_id bigint, x_ev_time timestamptz,
    x_ev_retry integer, x_ev_type text, x_ev_data text, x_ev_extra1 text, x_ev_extra2 text, x_ev_extra3 text,
    x_ev_extra4 text
) returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_sub pgque.subscription := pgque._find_subscription(x_queue, x_consumer); v_id bigint := x_ev_id;
begin
    if v_sub.sub_id is null then raise exception 'consumer not registered'; end if;
    if v_id is null then v_id := nextval((pgque._queue(x_queue)).queue_event_seq::regclass); end if;
    insert into pgque.retry_queue values (
        x_retry_after, v_sub.sub_queue, v_id, x_ev_time, null, v_sub.sub_id, x_ev_retry, x_ev_type, x_ev_data,
        x_ev_extra1, x_ev_extra2, x_ev_extra3, x_ev_extra4
    );
    return v_id;
end $$;
comment on function pgque.event_retry_raw is 'Put an event with every field given into the retry queue of a consumer';

create or replace function pgque.batch_retry(i_batch_id bigint, i_retry_seconds integer)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_batch pgque._window := pgque._batch(i_batch_id, true); v_event pgque.event_template; v_count integer := 0;
begin
    if v_batch.batch_id is null then raise exception 'batch_retry: batch % not found', i_batch_id; end if;
    for v_event in select * from pgque._read(pgque._readable_batch(i_batch_id), null) loop
        v_count := v_count + pgque._retry_event(v_batch, v_event, now() + make_interval(secs => i_retry_seconds));
    end loop;
    return v_count;
end $$;
comment on function pgque.batch_retry is 'Retry every event of a batch, whatever its count; the number of events newly queued';

create or replace function pgque._reinsert_due(i_queue pgque.queue) returns integer language plpgsql as $$
-- Each event uses up a sequence value, so that the ticker counts it as new.
declare v_count integer;
begin
    execute format('with due as materialized ('
        ' delete from pgque.retry_queue r using ('
        '  select d.ev_owner, d.ev_id from pgque.retry_queue d'
        '  where d.ev_queue = $1 and d.ev_retry_after <= now() for update skip locked) l'
        ' where r.ev_owner = l.ev_owner and r.ev_id = l.ev_id returning r.*, nextval($2::regclass))'
        ' insert into %s'
        ' select ev_id, ev_time, pg_current_xact_id(), ev_owner, ev_retry, ev_type, ev_data,'
        ' ev_extra1, ev_extra2, ev_extra3, ev_extra4 from due order by ev_id',
        pgque._event_table(i_queue)) using i_queue.queue_id, i_queue.queue_event_seq;
    get diagnostics v_count = row_count;
    return v_count;
end $$;
comment on function pgque._reinsert_due is 'Write the due retries of a queue into its event table again';

create or replace function pgque.maint_retry_events()
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_queue pgque.queue; v_count integer := 0;
begin
    for v_queue in
        select * from pgque.queue q where not q.queue_disable_insert
            and exists (select from pgque.retry_queue r where r.ev_queue = q.queue_id and r.ev_retry_after <= now())
        order by q.queue_name
    loop
        begin
            v_count := v_count + pgque._reinsert_due(v_queue);
        exception when others then
            raise warning 'pgque.maint_retry_events: queue % skipped: %', v_queue.queue_name, sqlerrm;
        end;
    end loop;
    return v_count;
end $$;
comment on function pgque.maint_retry_events is
'Bring all due retries back into their queues; their number. A queue that refuses is skipped with a warning, its retries stay';

-- src/65_dead_letters.sql

-- Dead letters: events that a consumer gave up, kept with the reason until they
-- are replayed or purged.

create or replace function pgque.event_dead(
    i_batch_id bigint, i_event_id bigint, i_reason text, i_ev_time timestamptz, i_ev_txid xid8, i_ev_retry integer,
    i_ev_type text, i_ev_data text, i_ev_extra1 text default null, i_ev_extra2 text default null,
    i_ev_extra3 text default null, i_ev_extra4 text default null
) returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_batch pgque._window := pgque._batch(i_batch_id, true);
begin
    if v_batch.batch_id is null then raise exception 'batch not found: %', i_batch_id; end if;
    perform pgque._bury_event(v_batch,
        row(i_event_id, i_ev_time, i_ev_txid, null, i_ev_retry, i_ev_type, i_ev_data,
            i_ev_extra1, i_ev_extra2, i_ev_extra3, i_ev_extra4)::pgque.event_template,
        i_reason);
    return 1;
end $$;
comment on function pgque.event_dead is 'Make a dead letter from the given fields, for the consumer that holds the batch';

create or replace function pgque.dlq_inspect(i_queue_name text, i_limit_count integer default 100)
returns setof pgque.dead_letter language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    return query
    select d.* from pgque.dead_letter d join pgque.queue q on q.queue_id = d.dl_queue_id
    where q.queue_name = i_queue_name order by d.dl_time desc, d.dl_id desc limit i_limit_count;
end $$;
comment on function pgque.dlq_inspect is 'Dead letters of a queue, newest first';

create or replace function pgque.dlq_replay(i_dead_letter_id bigint)
returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
-- Deleting first makes a second replay of the same letter wait and find nothing.
declare v_letter pgque.dead_letter; v_owner integer; v_queue_name text;
begin
    delete from pgque.dead_letter where dl_id = i_dead_letter_id returning * into v_letter;
    if not found then raise exception 'dead letter entry not found: %', i_dead_letter_id; end if;
    select s.sub_id into v_owner from pgque.subscription s
    where s.sub_queue = v_letter.dl_queue_id and s.sub_consumer = v_letter.dl_consumer_id;
    if not found then
        raise exception 'consumer not registered'
            using hint = 'Subscribe the consumer of this dead letter again, then replay it.';
    end if;
    select q.queue_name into v_queue_name from pgque.queue q where q.queue_id = v_letter.dl_queue_id;
    return pgque.insert_event_raw(
        v_queue_name, null, now(), v_owner, null, v_letter.ev_type, v_letter.ev_data,
        v_letter.ev_extra1, v_letter.ev_extra2, v_letter.ev_extra3, v_letter.ev_extra4);
end $$;
comment on function pgque.dlq_replay is 'Send a dead letter again, as a new event and only to the consumer that gave it up; returns the new event id';

create or replace function pgque.dlq_replay_all(
    i_queue_name text, out replayed bigint, out failed bigint, out first_error text
) language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_id bigint;
begin
    replayed := 0; failed := 0;
    for v_id in
        select d.dl_id from pgque.dead_letter d join pgque.queue q on q.queue_id = d.dl_queue_id
        where q.queue_name = i_queue_name order by d.dl_id for update of d skip locked
    loop
        begin
            perform pgque.dlq_replay(v_id);
            replayed := replayed + 1;
        exception when others then
            failed := failed + 1;
            first_error := coalesce(first_error, format('dl_id=%s: %s', v_id, sqlerrm));
            raise warning 'dlq_replay_all: failed to replay dl_id=%, error: %', v_id, sqlerrm;
        end;
    end loop;
end $$;
comment on function pgque.dlq_replay_all is 'Replay the dead letters of a queue one by one; those that fail stay. Letters that another session replays are left to it';

create or replace function pgque.dlq_purge(i_queue_name text, i_older_than interval default '30 days')
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_count integer;
begin
    delete from pgque.dead_letter d using pgque.queue q
    where q.queue_id = d.dl_queue_id and q.queue_name = i_queue_name and d.dl_time < now() - i_older_than;
    get diagnostics v_count = row_count;
    return v_count;
end $$;
comment on function pgque.dlq_purge is 'Delete dead letters older than an interval; their number';

-- src/68_group_windows.sql

-- Cooperative consumers: a group shares one cursor (the coop_main row) and hands
-- whole windows to its members (coop_member rows). All rows of a group have one
-- sub_id, so that retries come back to the group.
--
-- This file finds the window to hand out next. It needs the main row for no longer
-- than the cursor takes to move: a window is claimed by an advisory lock on its
-- first tick, which tells other sessions of a claim that is not committed yet, and
-- by a row in coop_window when the cursor cannot be moved over it at once.

create or replace function pgque._move_group_cursor(
    i_queue_id integer, i_main_id integer, i_from_tick bigint, i_to_tick bigint
) returns void language plpgsql as $$
-- When another session holds the main row, the window stays in coop_window and a
-- later call moves the cursor over it.
declare v_start bigint; v_cursor bigint; v_next bigint;
begin
    select sub_last_tick into v_start from pgque.subscription
    where sub_queue = i_queue_id and sub_consumer = i_main_id for no key update skip locked;
    v_cursor := v_start;
    if v_start = i_from_tick then
        v_cursor := i_to_tick;
    elsif i_from_tick is not null then
        insert into pgque.coop_window values (i_queue_id, i_main_id, i_from_tick, i_to_tick);
    end if;
    loop
        delete from pgque.coop_window
        where cw_queue = i_queue_id and cw_consumer = i_main_id and cw_from_tick = v_cursor returning cw_to_tick into v_next;
        exit when not found;
        v_cursor := v_next;
    end loop;
    if v_cursor <> v_start then
        update pgque.subscription set sub_last_tick = v_cursor, sub_active = clock_timestamp()
        where sub_queue = i_queue_id and sub_consumer = i_main_id;
    end if;
end $$;
comment on function pgque._move_group_cursor is 'Mark a window as handed out, when one is given, and move the cursor of the group as far as it goes';

create or replace function pgque._claim_window(
    i_main pgque.subscription, i_min_lag interval, i_min_count bigint, i_min_interval interval,
    out from_tick bigint, out to_tick bigint
) language plpgsql as $$
-- Walks from the cursor over windows that are handed out (rows) or being handed
-- out (advisory locks). A window ends where the event count changes, so that all
-- sessions see the same borders, and never beyond the start of a known one.
declare v_handed_out_to bigint;
begin
    from_tick := i_main.sub_last_tick;
    loop
        select w.cw_to_tick into v_handed_out_to from pgque.coop_window w
        where w.cw_queue = i_main.sub_queue and w.cw_consumer = i_main.sub_consumer and w.cw_from_tick = from_tick;
        if found then
            from_tick := v_handed_out_to;
            continue;
        end if;
        to_tick := pgque._next_tick(i_main.sub_queue, from_tick, i_min_lag, i_min_count, i_min_interval);
        exit when to_tick is null;
        to_tick := least(to_tick, (
            select min(w.cw_from_tick) from pgque.coop_window w
            where w.cw_queue = i_main.sub_queue and w.cw_consumer = i_main.sub_consumer and w.cw_from_tick > from_tick));
        exit when pg_try_advisory_xact_lock(hashtextextended('pgque.window ' || i_main.sub_id, from_tick));
        from_tick := to_tick;
    end loop;
end $$;
comment on function pgque._claim_window is 'Next free window of a group, locked until commit; NULL end when there is none';

create or replace function pgque._next_free_window(
    i_main pgque.subscription, i_min_lag interval, i_min_count bigint, i_min_interval interval,
    out from_tick bigint, out to_tick bigint
) language plpgsql as $$
-- Windows of a wanted size have borders that other sessions cannot foresee: for
-- them the advisory lock (pgque.group, group) is taken alone, as for the end of the
-- group; who hands out other windows or joins shares it. A claim is checked again
-- once it is locked, for the session that held it before may have committed meanwhile.
begin
    if i_min_count is not null or i_min_interval is not null then
        perform pg_advisory_xact_lock(hashtext('pgque.group'), i_main.sub_id);
    else
        perform pg_advisory_xact_lock_shared(hashtext('pgque.group'), i_main.sub_id);
    end if;
    loop
        select * into i_main from pgque.subscription
        where sub_queue = i_main.sub_queue and sub_consumer = i_main.sub_consumer;
        select c.from_tick, c.to_tick into from_tick, to_tick
        from pgque._claim_window(i_main, i_min_lag, i_min_count, i_min_interval) c;
        exit when to_tick is null or exists (
                select from pgque.subscription
                where sub_queue = i_main.sub_queue and sub_consumer = i_main.sub_consumer and sub_last_tick <= from_tick)
            and not exists (
                select from pgque.coop_window
                where cw_queue = i_main.sub_queue and cw_consumer = i_main.sub_consumer
                    and cw_from_tick <= from_tick and cw_to_tick > from_tick);
    end loop;
end $$;
comment on function pgque._next_free_window is 'Claim the next free window of a group; NULL end when there is none';

-- src/70_subconsumers.sql

-- Members of a group: joining, leaving, signs of life.

create or replace function pgque._validate_coop_names(i_queue text, i_consumer text, i_subconsumer text)
returns void language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    if coalesce(i_queue, '') = '' then raise exception 'queue name must not be empty'; end if;
    if coalesce(i_consumer, '') = '' then raise exception 'consumer name must not be empty'; end if;
    if coalesce(i_subconsumer, '') = '' then raise exception 'subconsumer name must not be empty'; end if;
    if position('.' in i_consumer) > 0 then
        raise exception 'cooperative consumer name must not contain dot: %', i_consumer;
    end if;
    if position('.' in i_subconsumer) > 0 then
        raise exception 'cooperative subconsumer name must not contain dot: %', i_subconsumer;
    end if;
end $$;
comment on function pgque._validate_coop_names is 'Experimental in PgQue 0.2. Raise when a name cannot be used for a group';

create or replace function pgque._clear_member_cursor(p_queue_id integer, p_consumer_id integer)
returns void language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    update pgque.subscription
    set sub_last_tick = null, sub_next_tick = null, sub_batch = null, sub_active = clock_timestamp()
    where sub_queue = p_queue_id and sub_consumer = p_consumer_id;
end $$;
comment on function pgque._clear_member_cursor is 'Experimental in PgQue 0.2. Take the open batch away from a member';

create or replace function pgque._sign_of_life(i_member pgque.subscription, i_not_within interval default '0')
returns void language sql as $$
update pgque.subscription set sub_active = clock_timestamp()
where sub_queue = i_member.sub_queue and sub_consumer = i_member.sub_consumer
    and sub_active <= clock_timestamp() - i_not_within
$$;
comment on function pgque._sign_of_life is 'Note that a member lives, unless that was noted within an interval';

create or replace function pgque._ensure_main(i_queue text, i_consumer text, i_convert_normal boolean)
returns pgque.subscription language plpgsql as $$
declare v_main pgque.subscription; v_is_mine boolean := pgque.register_consumer_at(i_queue, i_consumer, null) = 1;
begin
    v_main := pgque._find_subscription(i_queue, i_consumer);
    select * into v_main from pgque.subscription
    where sub_queue = v_main.sub_queue and sub_consumer = v_main.sub_consumer for no key update;
    if v_main.sub_role <> 'normal' then return v_main; end if;
    if not (v_is_mine or i_convert_normal) then
        raise exception 'consumer % on queue % is already a normal consumer; explicit conversion is required',
            i_consumer, i_queue;
    end if;
    if v_main.sub_batch is not null then
        raise exception 'cannot convert active normal consumer % on queue % to cooperative main', i_consumer, i_queue;
    end if;
    update pgque.subscription set sub_role = 'coop_main'
    where sub_queue = v_main.sub_queue and sub_consumer = v_main.sub_consumer;
    return v_main;
end $$;
comment on function pgque._ensure_main is 'Main row of a group, made or converted when needed';

create or replace function pgque.register_subconsumer(
    i_queue text, i_consumer text, i_subconsumer text, i_convert_normal boolean default false
) returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare
    v_name text := i_consumer || '.' || i_subconsumer;
    v_main pgque.subscription;
    v_member pgque.subscription;
    v_is_new boolean;
begin
    perform pgque._validate_coop_names(i_queue, i_consumer, i_subconsumer);
    v_main := pgque._find_subscription(i_queue, i_consumer);
    if v_main.sub_id is not null then
        -- Keeps the group from ending while this session joins it.
        perform pg_advisory_xact_lock_shared(hashtext('pgque.group'), v_main.sub_id);
        v_main := pgque._find_subscription(i_queue, i_consumer);
    end if;
    v_is_new := v_main.sub_id is null;
    if v_is_new or v_main.sub_role = 'normal' then
        v_main := pgque._ensure_main(i_queue, i_consumer, coalesce(i_convert_normal, false));
    elsif v_main.sub_role <> 'coop_main' then
        raise exception 'consumer % on queue % is not a cooperative main consumer', i_consumer, i_queue;
    end if;

    insert into pgque.subscription (sub_id, sub_queue, sub_consumer, sub_role)
    values (v_main.sub_id, v_main.sub_queue, pgque._consumer_id(v_name), 'coop_member') on conflict do nothing;
    if found then return 1; end if;
    v_member := pgque._find_subscription(i_queue, v_name);
    if v_member.sub_role <> 'coop_member' or v_member.sub_id <> v_main.sub_id then
        raise exception 'consumer name % on queue % is already registered incompatibly', v_name, i_queue;
    end if;
    perform pgque._sign_of_life(v_member);
    return v_is_new::integer;
end $$;
comment on function pgque.register_subconsumer is
'Experimental in PgQue 0.2. Join a group, which is made at the newest tick when new: 1, or 0 when already in it. Any number may do so at once';

create or replace function pgque.touch_subconsumer(i_queue text, i_consumer text, i_subconsumer text)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_member pgque.subscription := pgque._find_subscription(i_queue, i_consumer || '.' || i_subconsumer);
begin
    update pgque.subscription set sub_active = clock_timestamp()
    where sub_queue = v_member.sub_queue and sub_consumer = v_member.sub_consumer and sub_role = 'coop_member';
    return found::integer;
end $$;
comment on function pgque.touch_subconsumer is 'Experimental in PgQue 0.2. Sign of life of a member at work: 1, or 0 when it is unknown';

create or replace function pgque._remove_member(i_member pgque.subscription) returns integer language plpgsql as $$
-- The group ends with its last member, unless somebody is just joining; its cursor
-- becomes that of a normal consumer. Windows that the cursor could not pass yet are
-- then read again. Advisory lock (pgque.leave, group): of two members that leave at
-- once the second sees that it is the last.
declare v_main pgque.subscription;
begin
    perform pg_advisory_xact_lock(hashtext('pgque.leave'), i_member.sub_id);
    delete from pgque.subscription where sub_queue = i_member.sub_queue and sub_consumer = i_member.sub_consumer;
    perform pgque._forget_consumers(array[i_member.sub_consumer]);
    for i in 1..2 loop
        if exists (
            select from pgque.subscription
            where sub_queue = i_member.sub_queue and sub_id = i_member.sub_id and sub_role = 'coop_member')
        then return 1; end if;
        perform pg_advisory_xact_lock(hashtext('pgque.group'), i_member.sub_id); -- and look again
    end loop;
    select * into v_main from pgque.subscription
    where sub_queue = i_member.sub_queue and sub_id = i_member.sub_id and sub_role = 'coop_main';
    perform pgque._move_group_cursor(v_main.sub_queue, v_main.sub_consumer, null, null);
    delete from pgque.coop_window where cw_queue = v_main.sub_queue and cw_consumer = v_main.sub_consumer;
    update pgque.subscription set sub_role = 'normal'
    where sub_queue = v_main.sub_queue and sub_consumer = v_main.sub_consumer;
    return 1;
end $$;
comment on function pgque._remove_member is 'Take a member without open batch out of its group';

create or replace function pgque.unregister_subconsumer(
    i_queue text, i_consumer text, i_subconsumer text, i_batch_handling integer default 0
) returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare
    v_member pgque.subscription := pgque._find_subscription(i_queue, i_consumer || '.' || i_subconsumer);
    v_batch pgque._window;
    v_event pgque.event_template;
begin
    perform pgque._validate_coop_names(i_queue, i_consumer, i_subconsumer);
    if i_batch_handling is null or i_batch_handling not in (0, 1) then
        raise exception 'unsupported batch_handling value: %', i_batch_handling;
    end if;
    select * into v_member from pgque.subscription
    where sub_queue = v_member.sub_queue and sub_consumer = v_member.sub_consumer and sub_role = 'coop_member' for update;
    if not found then return 0; end if;
    if v_member.sub_batch is not null then
        if i_batch_handling = 0 then
            raise exception 'cannot unregister active cooperative subconsumer %/%/% without batch_handling = 1',
                i_queue, i_consumer, i_subconsumer;
        end if;
        v_batch := pgque._readable_batch(v_member.sub_batch);
        for v_event in select * from pgque._read(v_batch, null) loop
            perform pgque._fail_event(v_batch, v_event, now() + interval '1 minute', 'subconsumer unregistered');
        end loop;
    end if;
    return pgque._remove_member(v_member);
end $$;
comment on function pgque.unregister_subconsumer is
'Experimental in PgQue 0.2. Leave a group: 1, or 0 when unknown. With batch_handling 1 the events of an open batch are retried in a minute';

-- src/75_group_batches.sql

-- Batches of a group: given to a member, or taken over from a silent one.

create or replace function pgque._check_group(
    i_main pgque.subscription, i_member pgque.subscription, i_queue text, i_consumer text, i_subconsumer text
) returns void language plpgsql as $$
begin
    if i_main.sub_id is null then raise exception 'cooperative main consumer not found: %/%', i_queue, i_consumer; end if;
    if i_main.sub_role <> 'coop_main' then
        raise exception 'consumer % on queue % is not a cooperative main consumer', i_consumer, i_queue;
    end if;
    if i_member.sub_id is null then
        raise exception 'cooperative subconsumer not found: %/%/%', i_queue, i_consumer, i_subconsumer;
    end if;
    if i_member.sub_role <> 'coop_member' or i_member.sub_id <> i_main.sub_id then
        raise exception 'consumer name % on queue % is already registered incompatibly',
            i_consumer || '.' || i_subconsumer, i_queue;
    end if;
    if i_main.sub_batch is not null then
        raise exception 'cooperative main consumer %/% has an unexpected active batch %',
            i_queue, i_consumer, i_main.sub_batch;
    end if;
    if i_main.sub_last_tick is null then
        raise exception 'PgQ corruption: cooperative main consumer % on queue % has no cursor', i_consumer, i_queue;
    end if;
    if not exists (select from pgque.tick where tick_queue = i_main.sub_queue and tick_id = i_main.sub_last_tick) then
        raise exception 'PgQ corruption: cooperative main consumer % on queue % does not see tick %',
            i_consumer, i_queue, i_main.sub_last_tick;
    end if;
end $$;
comment on function pgque._check_group is 'Raise unless main and member rows fit together';

create or replace function pgque._silent_members(i_member pgque.subscription, i_dead_interval interval)
returns setof pgque.subscription language sql as $$
select * from pgque.subscription
where sub_queue = i_member.sub_queue and sub_id = i_member.sub_id and sub_role = 'coop_member'
    and sub_consumer <> i_member.sub_consumer
    and sub_batch is not null and sub_active < clock_timestamp() - i_dead_interval
$$;
comment on function pgque._silent_members is 'Members of the same group whose batches may be taken over';

create or replace function pgque._silent_member(i_member pgque.subscription, i_dead_interval interval)
returns pgque.subscription language sql as $$
select s.* from pgque.subscription s
join pgque._silent_members(i_member, i_dead_interval) m
    on m.sub_queue = s.sub_queue and m.sub_consumer = s.sub_consumer and m.sub_batch = s.sub_batch
where s.sub_active < clock_timestamp() - i_dead_interval
order by s.sub_active limit 1 for no key update of s skip locked
$$;
comment on function pgque._silent_member is 'Member of the same group whose batch may be taken over, locked; the one silent for longest';

create or replace function pgque.next_batch_custom(
    i_queue text, i_consumer text, i_subconsumer text, i_min_lag interval, i_min_count integer,
    i_min_interval interval, i_dead_interval interval default null, out batch_id bigint, out prev_tick_id bigint,
    out next_tick_id bigint
) language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
-- 1. The open batch of this member. 2. The batch of the member silent for longest.
-- 3. The next free window. The row of the member is locked first of all, for two
-- processes may use one name, and one may be leaving: then the group, see
-- _remove_member(). An idle poll writes nothing but a sign of life now and then.
declare
    v_main pgque.subscription := pgque._find_subscription(i_queue, i_consumer);
    v_member pgque.subscription := pgque._find_subscription(i_queue, i_consumer || '.' || i_subconsumer);
    v_victim pgque.subscription;
begin
    if v_main.sub_id is null or v_main.sub_role = 'normal' or v_member.sub_id is null then
        perform pgque.register_subconsumer(i_queue, i_consumer, i_subconsumer);
        v_main := pgque._find_subscription(i_queue, i_consumer);
        v_member := pgque._find_subscription(i_queue, i_consumer || '.' || i_subconsumer);
    end if;
    perform pgque._check_group(v_main, v_member, i_queue, i_consumer, i_subconsumer);
    if v_member.sub_batch is null
        and not exists (select from pgque._silent_members(v_member, i_dead_interval))
        and pgque._next_tick(v_main.sub_queue, v_main.sub_last_tick, i_min_lag, i_min_count, i_min_interval) is null
    then
        perform pgque._sign_of_life(v_member, '10 seconds');
        return;
    end if;

    select * into v_member from pgque.subscription
    where sub_queue = v_member.sub_queue and sub_consumer = v_member.sub_consumer for no key update;
    perform pgque._check_group(v_main, v_member, i_queue, i_consumer, i_subconsumer);
    if v_member.sub_batch is not null then
        batch_id := v_member.sub_batch;
        prev_tick_id := v_member.sub_last_tick;
        next_tick_id := v_member.sub_next_tick;
        perform pgque._sign_of_life(v_member, '1 second');
        return;
    end if;

    v_victim := pgque._silent_member(v_member, i_dead_interval);
    if v_victim.sub_batch is not null then
        prev_tick_id := v_victim.sub_last_tick;
        next_tick_id := v_victim.sub_next_tick;
        perform pgque._clear_member_cursor(v_victim.sub_queue, v_victim.sub_consumer);
    else
        select w.from_tick, w.to_tick into prev_tick_id, next_tick_id
        from pgque._next_free_window(v_main, i_min_lag, i_min_count, i_min_interval) w;
        if next_tick_id is null then
            prev_tick_id := null;
            return;
        end if;
        perform pgque._move_group_cursor(v_main.sub_queue, v_main.sub_consumer, prev_tick_id, next_tick_id);
    end if;
    update pgque.subscription
    set sub_last_tick = prev_tick_id, sub_next_tick = next_tick_id, sub_batch = nextval('pgque.batch_id_seq'),
        sub_active = clock_timestamp()
    where sub_queue = v_member.sub_queue and sub_consumer = v_member.sub_consumer
    returning sub_batch into batch_id;
end $$;
comment on function pgque.next_batch_custom(text, text, text, interval, integer, interval, interval) is
'Experimental in PgQue 0.2. Give a member its open batch, the batch of a member silent for i_dead_interval (NULL: never), or the next window; joins the group when needed. Members do not wait for each other''s commit';

create or replace function pgque.receive_coop(
    i_queue text, i_consumer text, i_subconsumer text, i_max_return integer default 100,
    i_dead_interval interval default null
) returns setof pgque.message language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
-- Asks for one event more than allowed: an overflow is noticed cheaply.
declare v_batch pgque._window; v_batch_id bigint; v_count bigint;
begin
    if i_max_return < 1 then raise exception 'pgque.receive_coop: max_return must be >= 1, got %', i_max_return; end if;
    perform pgque._validate_coop_names(i_queue, i_consumer, i_subconsumer);
    loop
        v_batch_id := pgque.next_batch(i_queue, i_consumer, i_subconsumer, i_dead_interval);
        exit when v_batch_id is null;
        v_batch := pgque._readable_batch(v_batch_id);
        return query
        select e.ev_id, v_batch.batch_id, e.ev_type, e.ev_data, e.ev_retry, e.ev_time,
            e.ev_extra1, e.ev_extra2, e.ev_extra3, e.ev_extra4
        from pgque._read(v_batch, i_max_return::bigint + 1) e order by e.ev_id limit i_max_return::bigint + 1;
        get diagnostics v_count = row_count;
        perform pgque._refuse_overflow('receive_coop', v_count, i_max_return);
        exit when v_count > 0;
        perform pgque.ack(v_batch_id);
    end loop;
end $$;
comment on function pgque.receive_coop is
'Experimental in PgQue 0.2. Whole batch of a member, as receive(); a member silent for i_dead_interval loses its batch to the caller';

-- src/80_maintenance.sql

-- Maintenance: event tables take turns, and the one whose turn comes is truncated.
-- Rotation has two steps, to be run in transactions of their own.

create or replace function pgque._truncate_if_read(i_table text, i_snapshot pg_snapshot)
returns boolean language plpgsql set lock_timeout = '100ms' as $$
-- The exclusive lock keeps every writer out, also one with an old snapshot, so
-- the rows seen under it are all there are. Only then readers are told to pass
-- the table by (see _for_each_table). False, and all locks given back, when
-- somebody uses the table or it holds a row that is still to be read.
begin
    if pg_relation_size(i_table::regclass) = 0 then return true; end if;
    execute format('lock table %s in access exclusive mode', i_table);
    if i_snapshot is not null and not pgque._is_read(i_table, i_snapshot) or not pg_try_advisory_xact_lock(hashtextextended(i_table, 0)) then
        raise lock_not_available;
    end if;
    execute format('truncate %s', i_table);
    return true;
exception when lock_not_available then
    return false;
end $$;
comment on function pgque._truncate_if_read is 'Empty an event table that all consumers have read; NULL stands for no consumer';

create or replace function pgque._delete_old_ticks(i_queue_id integer, i_lowest_tick bigint, i_before_xid xid8)
returns void language sql as $$
-- A tick that is just being subscribed to is locked, and passed over.
delete from pgque.tick t using (
    select o.tick_id from pgque.tick o where o.tick_queue = i_queue_id
        and o.tick_id < coalesce(i_lowest_tick, (select max(n.tick_id) from pgque.tick n where n.tick_queue = i_queue_id))
        and pg_snapshot_xmin(o.tick_snapshot) < i_before_xid
    for update skip locked
) old
where t.tick_queue = i_queue_id and t.tick_id = old.tick_id
$$;
comment on function pgque._delete_old_ticks is 'Delete ticks that every consumer has passed; the newest stays';

create or replace function pgque.maint_rotate_tables_step1(i_queue_name text)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_queue pgque.queue; v_lowest pgque.tick; v_lowest_id bigint; v_next integer; v_xid bigint;
begin
    select * into v_queue from pgque.queue where queue_name = i_queue_name and queue_switch_step2 is not null
        and queue_switch_time + queue_rotation_period < now()
    for no key update skip locked;
    if not found then return 0; end if;
    v_xid := pg_current_xact_id()::text::bigint;
    if v_xid < v_queue.queue_switch_step1 then
        raise exception 'queue % maint failure: step1=%, current=%', i_queue_name, v_queue.queue_switch_step1, v_xid;
    end if;
    select min(sub_last_tick) into v_lowest_id from pgque.subscription where sub_queue = v_queue.queue_id;
    select * into v_lowest from pgque.tick where tick_queue = v_queue.queue_id and tick_id = v_lowest_id;
    if not found and v_lowest_id is not null then
        raise exception 'queue % maint failure: tick % not found', i_queue_name, v_lowest_id;
    end if;

    v_next := (v_queue.queue_cur_table + 1) % v_queue.queue_ntables;
    if not pgque._truncate_if_read(pgque._event_table(v_queue, v_next), v_lowest.tick_snapshot) then return 0; end if;
    update pgque.queue
    set queue_cur_table = v_next, queue_switch_time = now(), queue_switch_step1 = v_xid, queue_switch_step2 = null
    where queue_id = v_queue.queue_id;
    perform pgque._delete_old_ticks(v_queue.queue_id, v_lowest_id, v_queue.queue_switch_step2::text::xid8);
    return 0;
end $$;
comment on function pgque.maint_rotate_tables_step1 is
'Rotate a queue when its period is over and the next table is read by all: truncate that table and let producers write to it';

create or replace function pgque.maint_rotate_tables_step2() returns integer language plpgsql as $$
begin
    update pgque.queue set queue_switch_step2 = pg_current_xact_id()::text::bigint where queue_switch_step2 is null;
    return 0;
end $$;
comment on function pgque.maint_rotate_tables_step2 is 'Finish the rotations begun by earlier transactions; without it no second rotation starts';

create or replace function pgque.maint_tables_to_vacuum() returns setof text language sql as $$
select unnest(array['pgque.subscription', 'pgque.consumer', 'pgque.queue', 'pgque.tick', 'pgque.retry_queue'])
where not current_setting('autovacuum')::boolean
$$;
comment on function pgque.maint_tables_to_vacuum is 'Tables to vacuum by hand; none when autovacuum is on';

create or replace function pgque.maint_operations(out func_name text, out func_arg text)
returns setof record language plpgsql as $$
begin
    return query
    select 'pgque.maint_rotate_tables_step1', q.queue_name from pgque.queue q
    where q.queue_switch_step2 is not null and q.queue_switch_time + q.queue_rotation_period < now() order by 2;
    return query
    select 'pgque.maint_rotate_tables_step2', null::text
    where exists (select from pgque.queue where queue_switch_step2 is null);
    return query
    select f.name, q.queue_name from pgque.queue q cross join unnest(q.queue_extra_maint) f (name) order by 2, 1;
    return query select 'vacuum', t from pgque.maint_tables_to_vacuum() t;
end $$;
comment on function pgque.maint_operations is 'Maintenance that is to be done now: function and argument';

create or replace function pgque._run_extra_maint(i_function text, i_queue_name text)
returns void language plpgsql as $$
-- A hook runs with the rights of the owner of the engine, so it must be his.
declare
    v_function oid := to_regprocedure(i_function || '(text)');
    v_owner oid := (select p.proowner from pg_proc p where p.oid = v_function);
    v_engine_owner oid := (select p.proowner from pg_proc p where p.oid = 'pgque.maint()'::regprocedure);
begin
    if v_function is null then
        raise warning 'pgque.maint: skipping % — invalid regprocedure: %', i_function, i_function || '(text)';
    elsif v_owner <> v_engine_owner then
        raise warning 'pgque.maint: skipping % — owner % is not maint() owner %',
            i_function, v_owner::regrole, v_engine_owner::regrole;
    else
        execute format('select %s($1)', v_function::regproc) using i_queue_name;
    end if;
end $$;
comment on function pgque._run_extra_maint is 'Run a maintenance function that a queue names';

create or replace function pgque.maint()
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_operation record; v_count integer := 0;
begin
    for v_operation in select * from pgque.maint_operations() loop
        continue when v_operation.func_name in ('vacuum', 'pgque.maint_rotate_tables_step2');
        begin
            if v_operation.func_name = 'pgque.maint_rotate_tables_step1' then
                perform pgque.maint_rotate_tables_step1(v_operation.func_arg);
            else
                perform pgque._run_extra_maint(v_operation.func_name, v_operation.func_arg);
            end if;
            v_count := v_count + 1;
        exception when others then
            raise warning 'pgque.maint: % of queue % failed: %', v_operation.func_name, v_operation.func_arg, sqlerrm;
        end;
    end loop;
    return v_count;
end $$;
comment on function pgque.maint is
'Rotate the queues that are due and run their extra maintenance; the number of operations done. Retries and step 2 are calls of their own';

-- src/82_rebase.sql

-- After a restore into another cluster: transaction ids of ticks and events belong
-- to the old one, and may lie in the future of the new one. What every consumer has
-- not read yet goes to the retry queue, which carries none; then all starts afresh.

create or replace function pgque._keep_unread(i_sub pgque.subscription, i_table text, i_newest_seq bigint)
returns bigint language plpgsql as $$
-- Old ids can still be compared with old snapshots. Events sent after the restore
-- carry ids of the new cluster and are known by their number alone.
declare
    v_from pg_snapshot := (
        select tick_snapshot from pgque.tick where tick_queue = i_sub.sub_queue and tick_id = i_sub.sub_last_tick);
    v_to pg_snapshot := (
        select tick_snapshot from pgque.tick
        where tick_queue = i_sub.sub_queue and tick_id = i_sub.sub_next_tick and i_sub.sub_role = 'coop_member');
    v_count bigint;
begin
    execute format('insert into pgque.retry_queue'
        ' select now(), $1, ev_id, ev_time, null, $2, ev_retry, ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4'
        ' from %s where (not pg_visible_in_snapshot(ev_txid, $3) or ev_id > $5)'
        ' and ($4 is null or pg_visible_in_snapshot(ev_txid, $4))'
        ' and (ev_owner is null or ev_owner = $2) on conflict do nothing', i_table)
    using i_sub.sub_queue, i_sub.sub_id, v_from, v_to, i_newest_seq;
    get diagnostics v_count = row_count;
    return v_count;
end $$;
comment on function pgque._keep_unread is 'Copy what a subscription has not read of an event table into the retry queue';

create or replace function pgque._rebase_queue(i_queue pgque.queue) returns bigint language plpgsql as $$
declare
    v_tables text := (select string_agg(t, ', ') from pgque._event_tables(i_queue) t);
    v_tick_id bigint;
    v_newest_seq bigint;
    v_count bigint;
begin
    execute format('lock table %s in access exclusive mode', v_tables);
    select tick_id, tick_event_seq into v_tick_id, v_newest_seq from pgque.tick
    where tick_queue = i_queue.queue_id order by tick_id desc limit 1;
    v_tick_id := coalesce(v_tick_id, 0) + 1;
    select sum(pgque._keep_unread(s, t, v_newest_seq)) into v_count
    from pgque.subscription s cross join pgque._event_tables(i_queue) t
    where s.sub_queue = i_queue.queue_id and s.sub_last_tick is not null;

    execute format('truncate %s', v_tables);
    delete from pgque.tick where tick_queue = i_queue.queue_id;
    insert into pgque.tick (tick_queue, tick_id, tick_event_seq)
    values (i_queue.queue_id, v_tick_id, coalesce(pg_sequence_last_value(i_queue.queue_event_seq::regclass), 0));
    perform setval(i_queue.queue_tick_seq::regclass, v_tick_id);
    delete from pgque.coop_window where cw_queue = i_queue.queue_id;
    update pgque.subscription
    set sub_last_tick = case when sub_role <> 'coop_member' then v_tick_id end, sub_next_tick = null, sub_batch = null
    where sub_queue = i_queue.queue_id;
    update pgque.queue
    set queue_switch_step1 = pg_current_xact_id()::text::bigint, queue_switch_step2 = pg_current_xact_id()::text::bigint
    where queue_id = i_queue.queue_id;
    return coalesce(v_count, 0);
end $$;
comment on function pgque._rebase_queue is 'Rebase one queue';

create or replace function pgque.rebase()
returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_queue pgque.queue; v_count bigint := 0;
begin
    perform pgque._refuse_old_snapshot();
    for v_queue in select * from pgque.queue order by queue_id for no key update loop
        v_count := v_count + pgque._rebase_queue(v_queue);
    end loop;
    return v_count;
end $$;
comment on function pgque.rebase is
'Repair all queues after a restore into another cluster: unread events, also those of open batches, come again as retries; their number';

-- src/85_info.sql

-- What operators look at: queues, consumers, batches, the installation.

create or replace function pgque.get_queue_info(
    i_queue_name text, out queue_name text, out queue_ntables integer, out queue_cur_table integer,
    out queue_rotation_period interval, out queue_switch_time timestamptz, out queue_external_ticker boolean,
    out queue_ticker_paused boolean, out queue_ticker_max_count integer, out queue_ticker_max_lag interval,
    out queue_ticker_idle_period interval, out ticker_lag interval, out ev_per_sec double precision,
    out ev_new bigint, out last_tick_id bigint
) returns setof record language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    return query
    select q.queue_name, q.queue_ntables, q.queue_cur_table, q.queue_rotation_period, q.queue_switch_time,
        q.queue_external_ticker, q.queue_ticker_paused, q.queue_ticker_max_count, q.queue_ticker_max_lag,
        q.queue_ticker_idle_period, now() - t.new_time,
        case when t.new_time > t.old_time
            then (t.new_seq - t.old_seq) / extract(epoch from t.new_time - t.old_time)::double precision end,
        coalesce(pg_sequence_last_value(q.queue_event_seq::regclass), 0) - t.new_seq, t.new_id
    from pgque.queue q
    cross join lateral (
        select max(r.tick_id), max(r.tick_time), min(r.tick_time), max(r.tick_event_seq), min(r.tick_event_seq)
        from (select * from pgque.tick where tick_queue = q.queue_id order by tick_id desc limit 20) r
    ) t (new_id, new_time, old_time, new_seq, old_seq)
    where i_queue_name is null or q.queue_name = i_queue_name order by q.queue_name;
end $$;
comment on function pgque.get_queue_info(text) is 'Settings and state of a queue: time since the newest tick, rate over the last ticks, events not ticked yet';

create or replace function pgque.get_consumer_info(
    i_queue_name text, i_consumer_name text, out queue_name text, out consumer_name text, out lag interval,
    out last_seen interval, out last_tick bigint, out current_batch bigint, out next_tick bigint,
    out pending_events bigint
) returns setof record language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    return query
    select q.queue_name, c.co_name, now() - t.tick_time, now() - s.sub_active, s.sub_last_tick, s.sub_batch,
        s.sub_next_tick, (select n.tick_event_seq from pgque.tick n where n.tick_queue = q.queue_id order by n.tick_id desc limit 1)
        - t.tick_event_seq
    from pgque.subscription s join pgque.queue q on q.queue_id = s.sub_queue
    join pgque.consumer c on c.co_id = s.sub_consumer
    left join pgque.tick t on t.tick_queue = s.sub_queue and t.tick_id = s.sub_last_tick
    where (i_queue_name is null or q.queue_name = i_queue_name)
        and (i_consumer_name is null or c.co_name = i_consumer_name) order by q.queue_name, c.co_name;
end $$;
comment on function pgque.get_consumer_info(text, text) is 'State of consumers: age and size of what lies behind their cursor, last sign of life, open batch';

create or replace function pgque.get_batch_info(
    x_batch_id bigint, out queue_name text, out consumer_name text, out batch_start timestamptz,
    out batch_end timestamptz, out prev_tick_id bigint, out tick_id bigint, out lag interval, out seq_start bigint,
    out seq_end bigint
) language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    select q.queue_name, c.co_name, w.from_time, w.to_time, w.from_tick, w.to_tick, now() - w.to_time, w.from_seq, w.to_seq
    into queue_name, consumer_name, batch_start, batch_end, prev_tick_id, tick_id, lag, seq_start, seq_end
    from pgque._window w join pgque.queue q on q.queue_id = w.queue_id join pgque.consumer c on c.co_id = w.consumer_id
    where w.batch_id = x_batch_id;
end $$;
comment on function pgque.get_batch_info is 'Owner and borders of an open batch; one row of NULLs when unknown';

create or replace function pgque.status()
returns table (component text, status text, detail text) language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_config pgque.config := (select c from pgque.config c);
begin
    return query
    values
        ('postgresql', 'info', pg_catalog.version()),
        ('pgque', 'info', pgque.version()),
        ('scheduler', coalesce(v_config.scheduler, 'manual'), format(
            'ticker_job_id=%s, maint_job_id=%s, tick_period_ms=%s (%s ticks/sec)',
            coalesce(v_config.ticker_job_id::text, 'NULL'), coalesce(v_config.maint_job_id::text, 'NULL'),
            v_config.tick_period_ms, round(1000.0 / v_config.tick_period_ms, 2))),
        ('ticker', case when v_config.ticker_job_id is null then 'stopped' else 'scheduled' end, null),
        ('maintenance', case when v_config.maint_job_id is null then 'stopped' else 'scheduled' end, null),
        ('pg_cron', 'unavailable', 'call pgque.ticker() / pgque.maint() manually'),
        ('pg_timetable', 'unavailable', 'call pgque.ticker() / pgque.maint() manually'),
        ('queues', 'info', format('%s queues configured', (select count(*) from pgque.queue))),
        ('consumers', 'info', format('%s active subscriptions', (select count(*) from pgque.subscription)));
end $$;
comment on function pgque.status is 'Overview of the installation, one row per component';

create or replace function pgque.uninstall()
returns void language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    drop schema pgque cascade;
    raise notice 'pgque: schema dropped; the roles pgque_reader, pgque_writer and pgque_admin stay';
end $$;
comment on function pgque.uninstall is 'Remove the engine with all queues and events; only its owner may do so';

-- src/87_synonyms.sql

-- Functions that only call another one: with some of its arguments given, or by an older name.

do $$
declare v_definer text := 'security definer set search_path = pgque, pg_catalog, pg_temp'; v_synonym record;
begin
    for v_synonym in select * from (values
        ('drop_queue(x_queue_name text)', 'integer', 'strict',
            'pgque.drop_queue(x_queue_name, false)', 'Drop a queue that has no subscription'),
        ('insert_event(queue_name text, ev_type text, ev_data text)', 'bigint', '',
            'pgque.insert_event(queue_name, ev_type, ev_data, null, null, null, null)', 'Append an event'),
        ('send_batch(queue_name text, payloads jsonb[])', 'bigint[]', v_definer,
            'pgque._insert_events(queue_name, ''default'', payloads::text[])',
            'Append events of type default, ids in input order: JSON'),
        ('send_batch(queue_name text, type_name text, payloads jsonb[])', 'bigint[]', v_definer,
            'pgque._insert_events(queue_name, type_name, payloads::text[])', 'Append events, ids in input order: JSON'),
        ('send_batch(queue_name text, payloads text[])', 'bigint[]', v_definer,
            'pgque._insert_events(queue_name, ''default'', payloads)',
            'Append events of type default, ids in input order: text, kept byte for byte'),
        ('send_batch(queue_name text, type_name text, payloads text[])', 'bigint[]', v_definer,
            'pgque._insert_events(queue_name, type_name, payloads)',
            'Append events, ids in input order: text, kept byte for byte'),
        ('force_tick(i_queue_name text)', 'bigint', v_definer,
            'pgque.force_next_tick(i_queue_name)', 'Older name of force_next_tick()'),
        ('subscribe(queue text, consumer text)', 'integer', v_definer,
            'pgque.register_consumer_at(queue, consumer, null)',
            'Subscribe at the newest tick: 1 when new, 0 when already there. Any number may do so at once'),
        ('register_consumer(x_queue_name text, x_consumer_id text)', 'integer', v_definer,
            'pgque.register_consumer_at(x_queue_name, x_consumer_id, null)', 'Older name of subscribe()'),
        ('unsubscribe(queue text, consumer text)', 'integer', v_definer,
            'pgque.unregister_consumer(queue, consumer)', 'Unsubscribe, as unregister_consumer()'),
        ('next_batch(i_queue_name text, i_consumer_name text)', 'bigint', '',
            '(pgque.next_batch_custom(i_queue_name, i_consumer_name, null, null, null)).batch_id',
            'Open the next batch, or give the open one again; NULL when there is none'),
        ('finish_batch(x_batch_id bigint)', 'integer', v_definer, 'pgque.ack(x_batch_id)', 'Older name of ack()'),
        ('event_retry(x_batch_id bigint, x_event_id bigint, x_retry_seconds integer)', 'integer', v_definer,
            'pgque.event_retry(x_batch_id, x_event_id, now() + make_interval(secs => x_retry_seconds))',
            'Retry one event after some seconds, whatever its count: 1, or 0 when it waits already'),
        ('subscribe_subconsumer(i_queue text, i_consumer text, i_subconsumer text, i_convert_normal boolean default false)',
            'integer', v_definer, 'pgque.register_subconsumer(i_queue, i_consumer, i_subconsumer, i_convert_normal)',
            'Experimental in PgQue 0.2. Join a group, as register_subconsumer()'),
        ('unsubscribe_subconsumer(i_queue text, i_consumer text, i_subconsumer text, i_batch_handling integer default 0)',
            'integer', v_definer, 'pgque.unregister_subconsumer(i_queue, i_consumer, i_subconsumer, i_batch_handling)',
            'Experimental in PgQue 0.2. Leave a group, as unregister_subconsumer()'),
        ('next_batch(i_queue text, i_consumer text, i_subconsumer text, i_dead_interval interval default null)', 'bigint',
            v_definer, '(pgque.next_batch_custom(i_queue, i_consumer, i_subconsumer, null, null, null, i_dead_interval)).batch_id',
            'Experimental in PgQue 0.2. Open the next batch of a member, as next_batch_custom()')
    ) s (signature, result, options, call, meaning) loop
        perform pgque._write_function(format('%s returns %s', v_synonym.signature, v_synonym.result), '',
            v_synonym.options, format('return %s;', v_synonym.call));
        execute format('comment on function pgque.%s is %L',
            regexp_replace(v_synonym.signature, ' default \w+', ''), v_synonym.meaning);
    end loop;
end $$;

do $$
-- Such that return rows: with the columns of the function that they call.
declare v_definer text := 'security definer set search_path = pgque, pg_catalog, pg_temp'; v_synonym record;
begin
    for v_synonym in select *, (
            select string_agg(format('out %I %s', a.name, a.type::regtype), ', ' order by a.n)
            from pg_proc p cross join unnest(p.proargnames, p.proargmodes, p.proallargtypes) with ordinality a (name, mode, type, n)
            where p.oid = s.called::regprocedure and a.mode = 'o') as columns
        from (values
            ('get_queue_info', '', '', 'pgque.get_queue_info(text)', 'null', 'Settings and state of all queues'),
            ('get_consumer_info', '', v_definer, 'pgque.get_consumer_info(text, text)', 'null, null', 'State of all consumers'),
            ('get_consumer_info', 'i_queue_name text, ', v_definer, 'pgque.get_consumer_info(text, text)', 'i_queue_name, null',
                'State of the consumers of a queue'),
            ('get_batch_cursor', 'i_batch_id bigint, i_cursor_name text, i_quick_limit integer, ', 'strict',
                'pgque.get_batch_cursor(bigint, text, integer, text)', 'i_batch_id, i_cursor_name, i_quick_limit, null',
                'Open a named cursor over a batch and return its first rows')
        ) s (name, arguments, options, called, given, meaning)
    loop
        perform pgque._write_function(format('%I(%s%s) returns setof record', v_synonym.name, v_synonym.arguments, v_synonym.columns),
            '', v_synonym.options, format('return query select * from pgque.%I(%s);', v_synonym.name, v_synonym.given));
        execute format('comment on function pgque.%I(%s%s) is %L',
            v_synonym.name, v_synonym.arguments, v_synonym.columns, v_synonym.meaning);
    end loop;
end $$;

-- src/90_roles.sql

-- Roles and grants. Roles belong to the whole server: they are made only when
-- missing, and other installations may be making them at the same moment.
-- PUBLIC gets nothing: payloads are for readers only.

do $$
declare v_role text;
begin
    foreach v_role in array array['pgque_reader', 'pgque_writer', 'pgque_admin'] loop
        begin
            if to_regrole(v_role) is null then execute format('create role %I nologin', v_role); end if;
        exception when duplicate_object or unique_violation then
            null;
        end;
    end loop;
    foreach v_role in array array['pgque_reader', 'pgque_writer'] loop
        begin
            if not pg_has_role('pgque_admin', v_role, 'member') then execute format('grant %I to pgque_admin', v_role); end if;
        exception when unique_violation then
            null;
        end;
    end loop;
end $$;

create or replace function pgque.grant_perms(x_queue_name text)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare
    v_queue pgque.queue := pgque._queue(x_queue_name, 'Queue not found');
    v_tables text := (select string_agg(t, ', ') from pgque._event_tables(v_queue) t);
begin
    v_tables := format('%s, pgque.%I', v_tables, 'event_' || v_queue.queue_id);
    execute format('revoke all on %s from public', v_tables);
    execute format('grant select on %s to pgque_reader', v_tables);
    execute format('grant all on %s to pgque_admin', v_tables);
    v_tables := format('pgque.%I, pgque.%I', 'event_' || v_queue.queue_id || '_id_seq', 'event_' || v_queue.queue_id || '_tick_seq');
    execute format('revoke all on sequence %s from public', v_tables);
    execute format('grant select on sequence %s to pgque_reader', v_tables);
    execute format('grant all on sequence %s to pgque_admin', v_tables);
    return 1;
end $$;
comment on function pgque.grant_perms(text) is 'Set the rights on the tables and sequences of a queue';

revoke all on schema pgque from public;
revoke all on all tables in schema pgque from public;
revoke all on all sequences in schema pgque from public;
revoke all on all routines in schema pgque from public;

grant usage on schema pgque to pgque_reader, pgque_writer;
grant usage, create on schema pgque to pgque_admin;
grant select on all tables in schema pgque to pgque_reader;
grant select on all sequences in schema pgque to pgque_reader;
grant all on all tables in schema pgque to pgque_admin;
grant all on all sequences in schema pgque to pgque_admin;

do $$
-- All overloads of a name go to one role; the admin is a member of the two others.
declare v_grant record;
begin
    for v_grant in
        select p.oid::regprocedure as routine, r.role
        from (values
            ('pgque_writer', 'dlq_replay dlq_replay_all insert_event send send_batch'),
            ('pgque_reader', 'ack dlq_inspect engine_version event_retry finish_batch get_batch_events get_batch_info'
                ' get_consumer_info get_queue_info nack next_batch next_batch_custom next_batch_info receive receive_coop'
                ' register_consumer register_consumer_at register_subconsumer subscribe subscribe_subconsumer'
                ' touch_subconsumer unregister_consumer unregister_subconsumer unsubscribe unsubscribe_subconsumer version'),
            ('pgque_admin', 'batch_retry create_queue current_event_table dlq_purge drop_queue event_dead event_retry_raw'
                ' find_tick_helper force_next_tick force_tick get_batch_cursor grant_perms insert_event_raw maint'
                ' maint_operations maint_retry_events maint_rotate_tables_step1 maint_rotate_tables_step2'
                ' maint_tables_to_vacuum rebase set_queue_config set_tick_period_ms status ticker'
                ' ticker_loop tune_storage')
        ) r (role, names)
        join pg_proc p on p.pronamespace = 'pgque'::regnamespace and p.proname = any (string_to_array(r.names, ' '))
    loop
        execute format('grant execute on routine %s to %I', v_grant.routine, v_grant.role);
    end loop;
end $$;
