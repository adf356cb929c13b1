-- Code that is written anew for the queues there are. SQL whose text is made at run
-- time is parsed and planned at each call, which costs more than all the rest of
-- sending or reading; written down in functions it is planned once per session.

do $$
begin
    if to_regtype('pgque._window') is null then
        create type pgque._window as (
            batch_id bigint,
            queue_id integer,
            sub_id integer,
            from_tick bigint,
            to_tick bigint,
            from_time timestamptz,
            to_time timestamptz,
            from_seq bigint,
            to_seq bigint,
            from_snapshot pg_snapshot,
            to_snapshot pg_snapshot
        );
    end if;
end
$$;
comment on type pgque._window is 'An open batch: all that is needed to read the events between its two ticks';
comment on column pgque._window.batch_id is 'Batch';
comment on column pgque._window.queue_id is 'Queue';
comment on column pgque._window.sub_id is 'Subscription that reads';
comment on column pgque._window.from_tick is 'Tick before the window';
comment on column pgque._window.to_tick is 'Tick that ends the window';
comment on column pgque._window.from_time is 'Time of the tick before the window';
comment on column pgque._window.to_time is 'Time of the tick that ends the window';
comment on column pgque._window.from_seq is 'Events sent at the tick before the window';
comment on column pgque._window.to_seq is 'Events sent at the tick that ends the window';
comment on column pgque._window.from_snapshot is 'Snapshot of the tick before the window';
comment on column pgque._window.to_snapshot is 'Snapshot of the tick that ends the window';

create or replace function pgque._for_each_table(i_queue pgque.queue, i_code text)
returns text language sql as $$
-- Empty tables are passed by, so that no lock on them hinders a rotation. Advisory
-- lock (table), shared: refused while a rotation that is not committed yet has
-- emptied the table, which it does only when nobody has to read it any more.
select string_agg(
    format('if pg_try_advisory_xact_lock_shared(%s) and pg_relation_size(%L::regclass) > 0 then %s end if;',
        hashtextextended(t.name, 0), t.name, replace(i_code, '<table>', t.name)),
    e'\n' order by t.name)
from (select i_queue.queue_data_pfx || '_' || n from generate_series(0, i_queue.queue_ntables - 1) n) t (name)
$$;
comment on function pgque._for_each_table(pgque.queue, text) is
'Code that does something with each event table of a queue that may hold events';

create or replace function pgque._write_reading(i_queue pgque.queue)
returns void language plpgsql as $$
-- Events that became visible from one snapshot to the other: those of transactions
-- begun in between, and those of transactions that ran at the first tick and had
-- ended at the second. The latter are named one by one: a range down to the oldest
-- running transaction would read everything again for each batch.
-- The plans are made on tables that may be empty then and huge later.
begin
    execute format($function$
        create or replace function pgque._read_%s(i_window pgque._window, i_limit bigint)
        returns setof pgque.event_template language plpgsql
        set plan_cache_mode = force_generic_plan set enable_seqscan = off as $body$
        declare
            v_from xid8 := pg_snapshot_xmax(i_window.from_snapshot);
            v_to xid8 := pg_snapshot_xmax(i_window.to_snapshot);
            v_all_done boolean := pg_snapshot_xmin(i_window.to_snapshot) = v_to;
            v_late xid8[];
        begin
            if pg_snapshot_xmin(i_window.from_snapshot) <> v_from then
                select array_agg(x.id) into v_late from pg_snapshot_xip(i_window.from_snapshot) x (id)
                where pg_visible_in_snapshot(x.id, i_window.to_snapshot);
            end if;
            %s
        end
        $body$
        $function$, i_queue.queue_id, pgque._for_each_table(i_queue, $code$
            return query select * from <table>
            where ev_txid >= v_from and ev_txid < v_to and (ev_owner is null or ev_owner = i_window.sub_id)
                and (v_all_done or pg_visible_in_snapshot(ev_txid, i_window.to_snapshot))
            limit i_limit;
            if v_late is not null then
                return query select * from <table>
                where ev_txid = any (v_late) and (ev_owner is null or ev_owner = i_window.sub_id)
                limit i_limit;
            end if;$code$));
    execute format($function$
        create or replace function pgque._find_%s(i_window pgque._window, i_event_id bigint)
        returns pgque.event_template language plpgsql
        set plan_cache_mode = force_generic_plan set enable_seqscan = off as $body$
        declare
            v_event pgque.event_template;
        begin
            %s
            return v_event;
        end
        $body$
        $function$, i_queue.queue_id, pgque._for_each_table(i_queue, $code$
            select * into v_event from <table>
            where ev_id = i_event_id and (ev_owner is null or ev_owner = i_window.sub_id)
                and pg_visible_in_snapshot(ev_txid, i_window.to_snapshot)
                and not pg_visible_in_snapshot(ev_txid, i_window.from_snapshot);
            if found then return v_event; end if;$code$));
    execute format('comment on function pgque._read_%s(pgque._window, bigint) is %L', i_queue.queue_id,
        'Events of a window, in no order; with a limit, so many of each table');
    execute format('comment on function pgque._find_%s(pgque._window, bigint) is %L', i_queue.queue_id,
        'Event of a window by its id, else NULL fields; one index probe per table');
    execute format('revoke all on function pgque._read_%1$s, pgque._find_%1$s from public', i_queue.queue_id);
end
$$;
comment on function pgque._write_reading(pgque.queue) is 'Write the functions that read the events of a queue';

create or replace function pgque._search_tree(i_variable text, i_keys integer[], i_codes text[])
returns text language plpgsql strict as $$
declare
    v_middle integer := cardinality(i_keys) / 2;
begin
    if cardinality(i_keys) = 1 then
        return format(e'if %s = %s then\n%s\nend if;', i_variable, i_keys[1], i_codes[1]);
    end if;
    return format(e'if %s <= %s then\n%s\nelse\n%s\nend if;', i_variable, i_keys[v_middle],
        pgque._search_tree(i_variable, i_keys[:v_middle], i_codes[:v_middle]),
        pgque._search_tree(i_variable, i_keys[v_middle + 1:], i_codes[v_middle + 1:]));
end
$$;
comment on function pgque._search_tree(text, integer[], text[]) is
'Code that runs the piece of code that belongs to a key, after few comparisons';

create or replace function pgque._dispatch(i_variable text, i_code text)
returns text language sql as $$
-- The variable is queue id * 10 + number of the table. The first hundred queues get
-- branches of their own; the code after these is for all others.
select pgque._search_tree(i_variable, array_agg(t.slot order by t.slot), array_agg(
    replace(replace(replace(i_code, '<table>', t.name), '<sequence>', t.sequence), '<queue>', t.queue_id::text)
    order by t.slot))
from (
    select q.queue_id, q.queue_id * 10 + n, q.queue_data_pfx || '_' || n, q.queue_event_seq
    from (select * from pgque.queue order by queue_id limit 100) q
    cross join lateral generate_series(0, q.queue_ntables - 1) n
) t (queue_id, slot, name, sequence)
$$;
comment on function pgque._dispatch(text, text) is 'Code that does something with one of the event tables there are';

create or replace function pgque._write_dispatch()
returns void language plpgsql as $$
-- Whatever these functions do not know (a queue beyond the first hundred, a disabled
-- or unknown one) they leave to dynamic SQL.
-- Advisory lock (pgque.dispatch): one writer at a time.
begin
    perform pg_advisory_xact_lock(hashtext('pgque.dispatch'));
    execute format($function$
        create or replace function pgque._insert_event(
            i_queue text, i_type text, i_data text, i_extra1 text default null, i_extra2 text default null,
            i_extra3 text default null, i_extra4 text default null
        ) returns bigint language plpgsql as $body$
        declare
            v_slot integer;
            v_id bigint;
        begin
            select q.queue_id * 10 + q.queue_cur_table into v_slot
            from pgque.queue q where q.queue_name = i_queue and not q.queue_disable_insert;
            %s
            return pgque.insert_event_raw(
                i_queue, null, now(), null, null, i_type, i_data, i_extra1, i_extra2, i_extra3, i_extra4);
        end
        $body$
        $function$, pgque._dispatch('v_slot', $code$
            v_id := nextval('<sequence>'::regclass);
            insert into <table> values (v_id, now(), pg_current_xact_id(), null, null, i_type, i_data,
                i_extra1, i_extra2, i_extra3, i_extra4);
            return v_id;$code$));
    execute format($function$
        create or replace function pgque._insert_events(i_queue text, i_type text, i_payloads text[])
        returns bigint[] language plpgsql as $body$
        declare
            v_slot integer;
            v_ids bigint[];
        begin
            select q.queue_id * 10 + q.queue_cur_table into v_slot
            from pgque.queue q where q.queue_name = i_queue and not q.queue_disable_insert
                and cardinality(i_payloads) > 0;
            %s
            return pgque._insert_events_raw(i_queue, i_type, i_payloads);
        end
        $body$
        $function$, pgque._dispatch('v_slot', $code$
            v_ids := array(select nextval('<sequence>'::regclass) from generate_series(1, cardinality(i_payloads)));
            insert into <table> select unnest(v_ids), now(), pg_current_xact_id(), null, null, i_type, unnest(i_payloads);
            return v_ids;$code$));
    execute format($function$
        create or replace function pgque._find_event(i_window pgque._window, i_event_id bigint)
        returns pgque.event_template language plpgsql as $body$
        declare
            v_slot integer := i_window.queue_id * 10;
            v_event pgque.event_template;
        begin
            %s
            execute format('select * from pgque._find_%%s($1, $2)', i_window.queue_id)
            into v_event
            using i_window, i_event_id;
            return v_event;
        end
        $body$
        $function$, pgque._dispatch('v_slot', 'return pgque._find_<queue>(i_window, i_event_id);'));
end
$$;
comment on function pgque._write_dispatch() is
'Write the functions that insert events or find one, with code of its own for each queue there is';

do $$
begin
    perform pgque._write_reading(q) from pgque.queue q;
    perform pgque._write_dispatch();
end
$$;
comment on function pgque._insert_event(text, text, text, text, text, text, text) is
'Append one new event for all consumers; runs with the rights of its caller. Written by _write_dispatch()';
comment on function pgque._insert_events(text, text, text[]) is
'Append events in the order of an array; runs with the rights of its caller. Written by _write_dispatch()';
comment on function pgque._find_event(pgque._window, bigint) is
'Event of a window by its id, else NULL fields. Written by _write_dispatch()';
