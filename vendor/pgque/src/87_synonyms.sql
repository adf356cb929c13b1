-- Functions that only call another one: with some of its arguments given, or by an older name.

do $$
declare v_definer text := 'security definer set search_path = pgque, pg_catalog, pg_temp'; v_synonym record;
begin
    for v_synonym in select * from (values
        ('drop_queue(x_queue_name text)', 'integer', 'strict',
            'pgque.drop_queue(x_queue_name, false)', 'Drop a queue that has no subscription'),
        ('insert_event(queue_name text, ev_type text, ev_data text)', 'bigint', '',
            'pgque.insert_event(queue_name, ev_type, ev_data, null, null, null, null)', 'Append an event'),
        ('send_batch(queue_name text, payloads jsonb[])', 'bigint[]', v_definer,
            'pgque._insert_events(queue_name, ''default'', payloads::text[])',
            'Append events of type default, ids in input order: JSON'),
        ('send_batch(queue_name text, type_name text, payloads jsonb[])', 'bigint[]', v_definer,
            'pgque._insert_events(queue_name, type_name, payloads::text[])', 'Append events, ids in input order: JSON'),
        ('send_batch(queue_name text, payloads text[])', 'bigint[]', v_definer,
            'pgque._insert_events(queue_name, ''default'', payloads)',
            'Append events of type default, ids in input order: text, kept byte for byte'),
        ('send_batch(queue_name text, type_name text, payloads text[])', 'bigint[]', v_definer,
            'pgque._insert_events(queue_name, type_name, payloads)',
            'Append events, ids in input order: text, kept byte for byte'),
        ('force_tick(i_queue_name text)', 'bigint', v_definer,
            'pgque.force_next_tick(i_queue_name)', 'Older name of force_next_tick()'),
        ('subscribe(queue text, consumer text)', 'integer', v_definer,
            'pgque.register_consumer_at(queue, consumer, null)',
            'Subscribe at the newest tick: 1 when new, 0 when already there. Any number may do so at once'),
        ('register_consumer(x_queue_name text, x_consumer_id text)', 'integer', v_definer,
            'pgque.register_consumer_at(x_queue_name, x_consumer_id, null)', 'Older name of subscribe()'),
        ('unsubscribe(queue text, consumer text)', 'integer', v_definer,
            'pgque.unregister_consumer(queue, consumer)', 'Unsubscribe, as unregister_consumer()'),
        ('next_batch(i_queue_name text, i_consumer_name text)', 'bigint', '',
            '(pgque.next_batch_custom(i_queue_name, i_consumer_name, null, null, null)).batch_id',
            'Open the next batch, or give the open one again; NULL when there is none'),
        ('finish_batch(x_batch_id bigint)', 'integer', v_definer, 'pgque.ack(x_batch_id)', 'Older name of ack()'),
        ('event_retry(x_batch_id bigint, x_event_id bigint, x_retry_seconds integer)', 'integer', v_definer,
            'pgque.event_retry(x_batch_id, x_event_id, now() + make_interval(secs => x_retry_seconds))',
            'Retry one event after some seconds, whatever its count: 1, or 0 when it waits already'),
        ('subscribe_subconsumer(i_queue text, i_consumer text, i_subconsumer text, i_convert_normal boolean default false)',
            'integer', v_definer, 'pgque.register_subconsumer(i_queue, i_consumer, i_subconsumer, i_convert_normal)',
            'Experimental in PgQue 0.2. Join a group, as register_subconsumer()'),
        ('unsubscribe_subconsumer(i_queue text, i_consumer text, i_subconsumer text, i_batch_handling integer default 0)',
            'integer', v_definer, 'pgque.unregister_subconsumer(i_queue, i_consumer, i_subconsumer, i_batch_handling)',
            'Experimental in PgQue 0.2. Leave a group, as unregister_subconsumer()'),
        ('next_batch(i_queue text, i_consumer text, i_subconsumer text, i_dead_interval interval default null)', 'bigint',
            v_definer, '(pgque.next_batch_custom(i_queue, i_consumer, i_subconsumer, null, null, null, i_dead_interval)).batch_id',
            'Experimental in PgQue 0.2. Open the next batch of a member, as next_batch_custom()')
    ) s (signature, result, options, call, meaning) loop
        perform pgque._write_function(format('%s returns %s', v_synonym.signature, v_synonym.result), '',
            v_synonym.options, format('return %s;', v_synonym.call));
        execute format('comment on function pgque.%s is %L',
            regexp_replace(v_synonym.signature, ' default \w+', ''), v_synonym.meaning);
    end loop;
end $$;

do $$
-- Such that return rows: with the columns of the function that they call.
declare v_definer text := 'security definer set search_path = pgque, pg_catalog, pg_temp'; v_synonym record;
begin
    for v_synonym in select *, (
            select string_agg(format('out %I %s', a.name, a.type::regtype), ', ' order by a.n)
            from pg_proc p cross join unnest(p.proargnames, p.proargmodes, p.proallargtypes) with ordinality a (name, mode, type, n)
            where p.oid = s.called::regprocedure and a.mode = 'o') as columns
        from (values
            ('get_queue_info', '', '', 'pgque.get_queue_info(text)', 'null', 'Settings and state of all queues'),
            ('get_consumer_info', '', v_definer, 'pgque.get_consumer_info(text, text)', 'null, null', 'State of all consumers'),
            ('get_consumer_info', 'i_queue_name text, ', v_definer, 'pgque.get_consumer_info(text, text)', 'i_queue_name, null',
                'State of the consumers of a queue'),
            ('get_batch_cursor', 'i_batch_id bigint, i_cursor_name text, i_quick_limit integer, ', 'strict',
                'pgque.get_batch_cursor(bigint, text, integer, text)', 'i_batch_id, i_cursor_name, i_quick_limit, null',
                'Open a named cursor over a batch and return its first rows')
        ) s (name, arguments, options, called, given, meaning)
    loop
        perform pgque._write_function(format('%I(%s%s) returns setof record', v_synonym.name, v_synonym.arguments, v_synonym.columns),
            '', v_synonym.options, format('return query select * from pgque.%I(%s);', v_synonym.name, v_synonym.given));
        execute format('comment on function pgque.%I(%s%s) is %L',
            v_synonym.name, v_synonym.arguments, v_synonym.columns, v_synonym.meaning);
    end loop;
end $$;
