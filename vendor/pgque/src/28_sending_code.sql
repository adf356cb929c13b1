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
