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
