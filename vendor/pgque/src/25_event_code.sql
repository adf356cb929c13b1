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

create or replace function pgque._search_tree(i_variable text, i_keys text[], i_codes text[])
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
comment on function pgque._search_tree(text, text[], text[]) is
'Code that runs the piece of code that belongs to a key, after few comparisons; keys are literals in order';

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

create or replace function pgque._write_finding()
returns void language plpgsql as $$
begin
    execute format($function$
        create or replace function pgque._find_event(i_window pgque._window, i_event_id bigint)
        returns pgque.event_template language plpgsql as $body$
        declare
            v_event pgque.event_template;
        begin
            %s
            execute format('select * from pgque._find_%%s($1, $2)', i_window.queue_id)
            into v_event
            using i_window, i_event_id;
            return v_event;
        end
        $body$
        $function$, (
            select pgque._search_tree('i_window.queue_id', array_agg(q.queue_id::text order by q.queue_id),
                array_agg(format('return pgque._find_%s(i_window, i_event_id);', q.queue_id) order by q.queue_id))
            from (select queue_id from pgque.queue order by queue_id limit 100) q
        ));
end
$$;
comment on function pgque._write_finding() is 'Write the function that finds an event of a window';

do $$
begin
    perform pgque._write_reading(q) from pgque.queue q;
    perform pgque._write_finding();
end
$$;
comment on function pgque._find_event(pgque._window, bigint) is
'Event of a window by its id, else NULL fields. Written anew when queues come and go';
