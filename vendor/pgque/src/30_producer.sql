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
