-- Producers: append events to the current table of a queue. No lock is taken on
-- the queue; a producer that still sees an old current table writes there, and
-- readers find the event all the same. send() is in 28_sending_code.sql.

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

create or replace function pgque._insert_events_raw(i_queue text, i_type text, i_payloads text[])
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
    v_ids := array(select nextval(v_queue.queue_event_seq::regclass) from generate_series(1, cardinality(i_payloads)));
    execute format('insert into %s_%s select unnest($1), now(), pg_current_xact_id(), null, null, $2, unnest($3)',
        v_queue.queue_data_pfx, v_queue.queue_cur_table)
    using v_ids, i_type, i_payloads;
    return v_ids;
end
$$;
comment on function pgque._insert_events_raw(text, text, text[]) is
'Append events in the order of an array through dynamic SQL, or say why not';

create or replace function pgque.insert_event(queue_name text, ev_type text, ev_data text)
returns bigint language plpgsql as $$
begin return pgque.insert_event(queue_name, ev_type, ev_data, null, null, null, null); end $$;
comment on function pgque.insert_event(text, text, text) is 'Append an event';

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
