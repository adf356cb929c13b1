-- The functions that send events. They are written anew when a queue comes, goes,
-- rotates, or is opened or closed for events, so that a call neither looks the
-- current table up nor plans its insert.

create or replace function pgque._for_each_writable(i_variable text, i_code text)
returns text language sql as $$
-- Code after this is for the others: queues beyond the first hundred, disabled or
-- unknown ones.
select pgque._search_tree(format('%s collate "C"', i_variable), array_agg(quote_literal(q.queue_name) order by q.name),
    array_agg(replace(replace(i_code, '<table>', q.queue_data_pfx || '_' || q.queue_cur_table),
        '<sequence>', q.queue_event_seq) order by q.name))
from (
    select *, queue_name collate "C" as name from pgque.queue where not queue_disable_insert order by queue_id limit 100
) q
$$;
comment on function pgque._for_each_writable(text, text) is
'Code that does something with the current event table of the queue that a variable names';

create or replace function pgque._write_sending()
returns void language plpgsql as $$
-- The functions that send one event, and what each takes for type, data and extras.
declare
    v_code record;
begin
    for v_code in
        select s.signature, s.fields, pgque._for_each_writable('queue_name', format('v_id := nextval(''<sequence>''::regclass);'
            ' insert into <table> values (v_id, now(), pg_current_xact_id(), null, null, %s); return v_id;', s.fields)) as branches
        from (values
            ('insert_event(queue_name text, ev_type text, ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text)',
                'ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4'),
            ('send(queue_name text, payload jsonb)', $fields$'default', payload::text, null, null, null, null$fields$),
            ('send(queue_name text, type_name text, payload jsonb)', 'type_name, payload::text, null, null, null, null'),
            ('send(queue_name text, payload text)', $fields$'default', payload, null, null, null, null$fields$),
            ('send(queue_name text, type_name text, payload text)', 'type_name, payload, null, null, null, null')
        ) s (signature, fields)
    loop
        execute format($function$
            create or replace function pgque.%s
            returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $body$
            declare
                v_id bigint;
            begin
                %s
                return pgque.insert_event_raw(queue_name, null, now(), null, null, %s);
            end
            $body$
            $function$, v_code.signature, v_code.branches, v_code.fields);
    end loop;
end
$$;
comment on function pgque._write_sending() is 'Write the functions that send one event';

create or replace function pgque._write_sending_batches()
returns void language plpgsql as $$
begin
    execute format($function$
        create or replace function pgque._insert_events(i_queue text, i_type text, i_payloads text[])
        returns bigint[] language plpgsql as $body$
        declare
            v_ids bigint[];
        begin
            if cardinality(i_payloads) > 0 then
                %s
            end if;
            return pgque._insert_events_raw(i_queue, i_type, i_payloads);
        end
        $body$
        $function$, pgque._for_each_writable('i_queue', $code$
            v_ids := array(select nextval('<sequence>'::regclass) from generate_series(1, cardinality(i_payloads)));
            insert into <table> select unnest(v_ids), now(), pg_current_xact_id(), null, null, i_type, unnest(i_payloads);
            return v_ids;$code$));
end
$$;
comment on function pgque._write_sending_batches() is 'Write the function that sends a batch of events';

create or replace function pgque._queue_changed()
returns trigger language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
-- A session that still runs the code of before writes to the table of before, where
-- readers find its events all the same.
-- Advisory lock (pgque.code): one writer at a time.
begin
    perform pg_advisory_xact_lock(hashtext('pgque.code'));
    perform pgque._write_sending();
    perform pgque._write_sending_batches();
    if tg_op <> 'UPDATE' then
        perform pgque._write_finding();
    end if;
    return null;
end
$$;
comment on function pgque._queue_changed() is 'Keep the written code in step with the queues there are';

do $$
begin
    perform pgque._write_sending();
    perform pgque._write_sending_batches();
    if not exists (select from pg_trigger where tgrelid = 'pgque.queue'::regclass and tgname = 'queue_code') then
        create trigger queue_code
        after insert or delete or update of queue_cur_table, queue_disable_insert on pgque.queue
        for each statement execute function pgque._queue_changed();
    end if;
end
$$;
comment on function pgque._insert_events(text, text, text[]) is
'Append events in the order of an array; runs with the rights of its caller. Written anew when queues change';
comment on function pgque.insert_event(text, text, text, text, text, text, text) is
'Append an event with its extra fields; it becomes readable after commit and the next tick. Written anew when queues change';
comment on function pgque.send(text, jsonb) is 'Append an event of type default: JSON. Written anew when queues change';
comment on function pgque.send(text, text, jsonb) is 'Append an event: JSON. Written anew when queues change';
comment on function pgque.send(text, text) is
'Append an event of type default: text, kept byte for byte. Written anew when queues change';
comment on function pgque.send(text, text, text) is
'Append an event: text, kept byte for byte. Written anew when queues change';
