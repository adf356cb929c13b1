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
