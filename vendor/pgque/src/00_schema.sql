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
    if v_version = '<version>' then return; end if;
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
returns text language sql immutable security definer set search_path = pgque, pg_catalog, pg_temp as $$ select '<version>' $$;
comment on function pgque.engine_version() is 'Version of this engine itself; equals the file VERSION';
