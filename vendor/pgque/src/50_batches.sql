-- Batches: the window between two ticks, opened for one consumer at a time.
-- Which events belong to it is computed from the two snapshots at each read;
-- nothing is stored but the cursor.

do $$
begin
    if to_regtype('pgque._window') is null then
        create type pgque._window as (
            queue_id integer,
            sub_id integer,
            data_pfx text,
            ntables integer,
            from_snapshot pg_snapshot,
            to_snapshot pg_snapshot
        );
    end if;
end
$$;
comment on type pgque._window is 'What is needed to read the events between two ticks';
comment on column pgque._window.queue_id is 'Queue';
comment on column pgque._window.sub_id is 'Subscription that reads';
comment on column pgque._window.data_pfx is 'Prefix of the event tables';
comment on column pgque._window.ntables is 'Number of event tables';
comment on column pgque._window.from_snapshot is 'Snapshot of the tick before the window';
comment on column pgque._window.to_snapshot is 'Snapshot of the tick that ends the window';

create or replace function pgque._tables_to_read(i_prefix text, i_ntables integer)
returns text[] language plpgsql as $$
-- Empty tables are left out, so that no lock on them hinders a rotation. Advisory
-- lock (table), shared: refused while a rotation that is not committed yet has
-- emptied the table, which it does only when nobody has to read it any more.
declare
    v_table text;
    v_tables text[] := '{}';
begin
    for i in 0..i_ntables - 1 loop
        v_table := i_prefix || '_' || i;
        continue when not pg_try_advisory_xact_lock_shared(hashtextextended(v_table, 0));
        continue when pg_relation_size(v_table::regclass) = 0;
        v_tables := v_tables || v_table;
    end loop;
    return v_tables;
end
$$;
comment on function pgque._tables_to_read(text, integer) is 'Event tables of a queue that may hold events to read';

create or replace function pgque._window_sql(
    i_window pgque._window, i_columns text, i_filter text default 'true'
) returns text language plpgsql as $$
-- Events that became visible from one snapshot to the other: those with
-- transactions begun in between, and those that ran at the first tick and had
-- ended at the second. The latter are named one by one: a range down to the
-- oldest running transaction would read everything again for each batch.
declare
    v_from pg_snapshot := i_window.from_snapshot;
    v_to pg_snapshot := i_window.to_snapshot;
    v_where text := format('(ev_owner is null or ev_owner = %s) and %s', i_window.sub_id, i_filter);
    v_range text := format('ev_txid >= %L and ev_txid < %L', pg_snapshot_xmax(v_from), pg_snapshot_xmax(v_to));
    v_late text;
    v_table text;
    v_sql text;
begin
    if pg_snapshot_xmin(v_to) <> pg_snapshot_xmax(v_to) then
        v_range := format('%s and pg_visible_in_snapshot(ev_txid, %L)', v_range, v_to);
    end if;
    if pg_snapshot_xmin(v_from) <> pg_snapshot_xmax(v_from) then
        v_late := (
            select string_agg(format('%L', x.id), ', ')
            from pg_snapshot_xip(v_from) x (id)
            where pg_visible_in_snapshot(x.id, v_to)
        );
    end if;
    foreach v_table in array pgque._tables_to_read(i_window.data_pfx, i_window.ntables) loop
        v_sql := concat(v_sql || ' union all ', 'select ', i_columns, ' from ', v_table, ' where ', v_range, ' and ', v_where);
        if v_late is not null then
            v_sql := concat(v_sql, ' union all select ', i_columns, ' from ', v_table,
                ' where ev_txid in (', v_late, ') and ', v_where);
        end if;
    end loop;
    return coalesce(v_sql, format('select %s from only pgque.event_template where false', i_columns));
end
$$;
comment on function pgque._window_sql(pgque._window, text, text) is 'Query for the events of a window, in no order';

create or replace function pgque._make_window(
    i_queue_id integer, i_sub_id integer, i_from_tick bigint, i_to_tick bigint
) returns pgque._window language plpgsql stable as $$
declare
    v_window pgque._window;
begin
    select q.queue_id, i_sub_id, q.queue_data_pfx, q.queue_ntables, f.tick_snapshot, t.tick_snapshot
    into v_window
    from pgque.queue q
    join pgque.tick f on f.tick_queue = q.queue_id and f.tick_id = i_from_tick
    join pgque.tick t on t.tick_queue = q.queue_id and t.tick_id = i_to_tick
    where q.queue_id = i_queue_id;
    return v_window;
end
$$;
comment on function pgque._make_window(integer, integer, bigint, bigint) is
'Window between two ticks; NULL fields when a tick is missing';

create or replace function pgque._batch_window(i_batch_id bigint)
returns pgque._window language plpgsql as $$
declare
    v_sub pgque.subscription;
    v_window pgque._window;
begin
    select * into v_sub from pgque.subscription where sub_batch = i_batch_id;
    if not found then
        raise exception 'batch not found: %', i_batch_id;
    end if;
    v_window := pgque._make_window(v_sub.sub_queue, v_sub.sub_id, v_sub.sub_last_tick, v_sub.sub_next_tick);
    if v_window.queue_id is null then
        raise exception 'Cannot find data for batch %', i_batch_id;
    end if;
    return v_window;
end
$$;
comment on function pgque._batch_window(bigint) is 'Window of an open batch; raises when there is none';

create or replace function pgque.find_tick_helper(
    i_queue_id integer, i_prev_tick_id bigint, i_prev_tick_time timestamptz, i_prev_tick_seq bigint,
    i_min_count bigint, i_min_interval interval, out next_tick_id bigint, out next_tick_time timestamptz,
    out next_tick_seq bigint
) language plpgsql stable as $$
-- A backlog of more than twice the wish is cut at the first tick that fulfils it.
declare
    v_new pgque.tick;
begin
    select * into v_new
    from pgque.tick
    where tick_queue = i_queue_id and tick_id > i_prev_tick_id
    order by tick_id desc
    limit 1;
    if v_new.tick_event_seq - i_prev_tick_seq > 2 * i_min_count
        or v_new.tick_time - i_prev_tick_time > 2 * i_min_interval
    then
        select * into v_new
        from pgque.tick
        where tick_queue = i_queue_id
            and tick_id > i_prev_tick_id
            and (tick_event_seq - i_prev_tick_seq >= i_min_count or tick_time - i_prev_tick_time >= i_min_interval)
        order by tick_id
        limit 1;
    end if;
    if v_new.tick_event_seq - i_prev_tick_seq >= i_min_count
        or v_new.tick_time - i_prev_tick_time >= i_min_interval
    then
        next_tick_id := v_new.tick_id;
        next_tick_time := v_new.tick_time;
        next_tick_seq := v_new.tick_event_seq;
    end if;
end
$$;
comment on function pgque.find_tick_helper(integer, bigint, timestamptz, bigint, bigint, interval) is
'Tick at which a batch of a wanted size or age ends; NULL when there is not enough yet';

create or replace function pgque._window_end(
    i_queue_id integer, i_from_tick bigint, i_min_lag interval, i_min_count bigint, i_min_interval interval
) returns bigint language plpgsql as $$
-- Ticks between which no event was sent are passed over in one window: it ends at
-- the first tick with a new event count, else at the newest one. That loses
-- nothing, for a window may always be joined with the next.
declare
    v_from pgque.tick;
    v_end pgque.tick;
begin
    select * into v_from from pgque.tick where tick_queue = i_queue_id and tick_id = i_from_tick;
    if i_min_count is not null or i_min_interval is not null then
        select h.next_tick_id, h.next_tick_time into v_end.tick_id, v_end.tick_time
        from pgque.find_tick_helper(
            i_queue_id, i_from_tick, v_from.tick_time, v_from.tick_event_seq, i_min_count, i_min_interval) h;
    else
        select * into v_end
        from pgque.tick
        where tick_queue = i_queue_id and tick_id > i_from_tick and tick_event_seq <> v_from.tick_event_seq
        order by tick_id
        limit 1;
        if not found then
            select * into v_end
            from pgque.tick
            where tick_queue = i_queue_id and tick_id > i_from_tick
            order by tick_id desc
            limit 1;
        end if;
    end if;
    if now() - v_end.tick_time < i_min_lag then
        return null;
    end if;
    return v_end.tick_id;
end
$$;
comment on function pgque._window_end(integer, bigint, interval, bigint, interval) is
'Tick that ends the next window of a cursor; NULL when there is none yet';

create or replace function pgque._find_event(i_window pgque._window, i_event_id bigint)
returns pgque.event_template language plpgsql as $$
-- One index probe per table, whatever the size of the batch.
declare
    v_event pgque.event_template;
    v_table text;
begin
    foreach v_table in array pgque._tables_to_read(i_window.data_pfx, i_window.ntables) loop
        execute 'select * from ' || v_table || ' where ev_id = $1 and pg_visible_in_snapshot(ev_txid, $2)'
            ' and not pg_visible_in_snapshot(ev_txid, $3) and (ev_owner is null or ev_owner = $4)'
        into v_event
        using i_event_id, i_window.to_snapshot, i_window.from_snapshot, i_window.sub_id;
        exit when v_event.ev_id is not null;
    end loop;
    return v_event;
end
$$;
comment on function pgque._find_event(pgque._window, bigint) is 'Event of a window by its id, else NULL fields';
