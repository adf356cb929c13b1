-- Producers: append events to the current table of a queue. No lock is taken on
-- the queue; a producer that still sees an old current table writes there, and
-- readers find the event all the same.

create or replace function pgque.insert_event_raw(
    queue_name text, ev_id bigint, ev_time timestamptz, ev_owner integer, ev_retry integer, ev_type text,
    ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text
) returns bigint language plpgsql as $$
-- A sequence value is used up even for a given id: the ticker counts events by it.
declare
    v_table text;
    v_disabled boolean;
    v_id bigint;
begin
    select q.queue_data_pfx || '_' || q.queue_cur_table, q.queue_disable_insert, nextval(q.queue_event_seq::regclass)
    into v_table, v_disabled, v_id
    from pgque.queue q
    where q.queue_name = insert_event_raw.queue_name;
    if not found then
        raise exception 'queue not found: %', insert_event_raw.queue_name;
    end if;
    if v_disabled and current_setting('session_replication_role') <> 'replica' then
        raise exception 'Insert into queue disallowed';
    end if;
    v_id := coalesce(insert_event_raw.ev_id, v_id);
    execute 'insert into ' || v_table
        || ' values ($1, $2, pg_current_xact_id(), $3, $4, $5, $6, $7, $8, $9, $10)'
    using v_id, ev_time, ev_owner, ev_retry, ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4;
    return v_id;
end
$$;
comment on function pgque.insert_event_raw(
    text, bigint, timestamptz, integer, integer, text, text, text, text, text, text
) is 'Append one event with every field given';

create or replace function pgque._insert_branches(i_slots integer[], i_tables text[])
returns text language plpgsql as $$
-- A search tree: few comparisons whatever the number of queues.
declare
    v_middle integer := cardinality(i_slots) / 2;
begin
    if cardinality(i_slots) = 1 then
        return format('if v_slot = %s then v_id := nextval(''%s_id_seq''::regclass); insert into %s values (v_id, now(),'
            ' pg_current_xact_id(), null, null, i_type, i_data, i_extra1, i_extra2, i_extra3, i_extra4);'
            ' return v_id; end if;',
            i_slots[1], regexp_replace(i_tables[1], '_\d+$', ''), i_tables[1]);
    end if;
    return format(e'if v_slot <= %s then\n%s\nelse\n%s\nend if;', i_slots[v_middle],
        pgque._insert_branches(i_slots[:v_middle], i_tables[:v_middle]),
        pgque._insert_branches(i_slots[v_middle + 1:], i_tables[v_middle + 1:]));
end
$$;
comment on function pgque._insert_branches(integer[], text[]) is 'Code that inserts an event into one of some tables';

create or replace function pgque._write_insert_event() returns void language plpgsql as $$
-- An insert whose text is made at run time is planned at each call, which costs
-- more than all the rest. So the inserts stand in a function that is written anew
-- when a queue is created. Whatever it does not know (a queue beyond the first
-- hundred, a disabled or unknown one) it leaves to insert_event_raw().
-- Advisory lock (pgque.producer): one writer at a time.
declare
    v_slots integer[];
    v_tables text[];
begin
    perform pg_advisory_xact_lock(hashtext('pgque.producer'));
    select array_agg(t.slot order by t.slot), array_agg(t.name order by t.slot)
    into v_slots, v_tables
    from (select * from pgque.queue order by queue_id limit 100) q
    cross join lateral (
        select q.queue_id * 10 + n, q.queue_data_pfx || '_' || n from generate_series(0, q.queue_ntables - 1) n
    ) t (slot, name);
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
        $function$, case when v_slots is not null then pgque._insert_branches(v_slots, v_tables) end);
end
$$;
comment on function pgque._write_insert_event() is 'Write the function _insert_event() for the queues there are';

do $$ begin perform pgque._write_insert_event(); end $$;
comment on function pgque._insert_event(text, text, text, text, text, text, text) is
'Append one new event for all consumers; runs with the rights of its caller. Written by _write_insert_event()';

create or replace function pgque._insert_events(i_queue text, i_type text, i_payloads text[])
returns bigint[] language plpgsql as $$
declare
    v_queue pgque.queue;
    v_ids bigint[];
begin
    if i_payloads is null then
        raise exception 'payloads must not be null';
    end if;
    if cardinality(i_payloads) = 0 then
        return '{}';
    end if;
    select * into v_queue from pgque.queue where queue_name = i_queue;
    if not found then
        raise exception 'queue not found: %', i_queue;
    end if;
    if v_queue.queue_disable_insert and current_setting('session_replication_role') <> 'replica' then
        raise exception 'Insert into queue disallowed';
    end if;
    v_ids := array(
        select nextval(v_queue.queue_event_seq::regclass) from generate_series(1, cardinality(i_payloads)));
    execute format('insert into %s_%s select unnest($1), now(), pg_current_xact_id(), null, null, $2, unnest($3)',
        v_queue.queue_data_pfx, v_queue.queue_cur_table)
    using v_ids, i_type, i_payloads;
    return v_ids;
end
$$;
comment on function pgque._insert_events(text, text, text[]) is
'Append events in the order of an array; runs with the rights of its caller';

create or replace function pgque.insert_event(
    queue_name text, ev_type text, ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text
) returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin return pgque._insert_event(queue_name, ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4); end $$;
comment on function pgque.insert_event(text, text, text, text, text, text, text) is
'Append an event with its extra fields; it becomes readable after commit and the next tick';

create or replace function pgque.insert_event(queue_name text, ev_type text, ev_data text)
returns bigint language plpgsql as $$
begin return pgque.insert_event(queue_name, ev_type, ev_data, null, null, null, null); end $$;
comment on function pgque.insert_event(text, text, text) is 'Append an event';

create or replace function pgque.send(queue_name text, payload jsonb)
returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin return pgque._insert_event(queue_name, 'default', payload::text); end $$;
comment on function pgque.send(text, jsonb) is 'Append an event of type default: JSON';

create or replace function pgque.send(queue_name text, type_name text, payload jsonb)
returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin return pgque._insert_event(queue_name, type_name, payload::text); end $$;
comment on function pgque.send(text, text, jsonb) is 'Append an event: JSON';

create or replace function pgque.send(queue_name text, payload text)
returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin return pgque._insert_event(queue_name, 'default', payload); end $$;
comment on function pgque.send(text, text) is 'Append an event of type default: text, kept byte for byte';

create or replace function pgque.send(queue_name text, type_name text, payload text)
returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin return pgque._insert_event(queue_name, type_name, payload); end $$;
comment on function pgque.send(text, text, text) is 'Append an event: text, kept byte for byte';

create or replace function pgque.send_batch(queue_name text, payloads jsonb[])
returns bigint[] language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin return pgque._insert_events(queue_name, 'default', payloads::text[]); end $$;
comment on function pgque.send_batch(text, jsonb[]) is 'Append events of type default, ids in input order: JSON';

create or replace function pgque.send_batch(queue_name text, type_name text, payloads jsonb[])
returns bigint[] language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin return pgque._insert_events(queue_name, type_name, payloads::text[]); end $$;
comment on function pgque.send_batch(text, text, jsonb[]) is 'Append events, ids in input order: JSON';

create or replace function pgque.send_batch(queue_name text, payloads text[])
returns bigint[] language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin return pgque._insert_events(queue_name, 'default', payloads); end $$;
comment on function pgque.send_batch(text, text[]) is 'Append events of type default, ids in input order: text, kept byte for byte';

create or replace function pgque.send_batch(queue_name text, type_name text, payloads text[])
returns bigint[] language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin return pgque._insert_events(queue_name, type_name, payloads); end $$;
comment on function pgque.send_batch(text, text, text[]) is 'Append events, ids in input order: text, kept byte for byte';

create or replace function pgque.current_event_table(x_queue_name text)
returns text language plpgsql as $$
declare
    v_queue pgque.queue;
begin
    select * into v_queue from pgque.queue where queue_name = x_queue_name;
    if not found then
        raise exception 'Event queue not found';
    end if;
    if v_queue.queue_disable_insert and current_setting('session_replication_role') <> 'replica' then
        raise exception 'Writing to queue disabled';
    end if;
    return v_queue.queue_data_pfx || '_' || v_queue.queue_cur_table;
end
$$;
comment on function pgque.current_event_table(text) is 'Name of the table that producers write to';
