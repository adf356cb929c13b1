-- Roles and grants. Roles belong to the whole server: they are made only when
-- missing, and other installations may be making them at the same moment.
-- PUBLIC gets nothing: payloads are for readers only.

do $$
declare
    v_role text;
begin
    foreach v_role in array array['pgque_reader', 'pgque_writer', 'pgque_admin'] loop
        begin
            if to_regrole(v_role) is null then
                execute format('create role %I nologin', v_role);
            end if;
        exception when duplicate_object or unique_violation then
            null;
        end;
    end loop;
    foreach v_role in array array['pgque_reader', 'pgque_writer'] loop
        begin
            if not exists (
                select from pg_auth_members m
                where m.roleid = to_regrole(v_role) and m.member = to_regrole('pgque_admin')
            ) then
                execute format('grant %I to pgque_admin', v_role);
            end if;
        exception when unique_violation then
            null;
        end;
    end loop;
end
$$;

create or replace function pgque.grant_perms(x_queue_name text)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare
    v_queue pgque.queue;
begin
    select * into v_queue from pgque.queue where queue_name = x_queue_name;
    if not found then
        raise exception 'Queue not found';
    end if;
    execute format('revoke all on %s, %s, %s from public',
        v_queue.queue_data_pfx, v_queue.queue_event_seq, v_queue.queue_tick_seq);
    execute format('grant select on %s, %s, %s to pgque_reader',
        v_queue.queue_data_pfx, v_queue.queue_event_seq, v_queue.queue_tick_seq);
    execute format('grant all on %s, %s, %s to pgque_admin',
        v_queue.queue_data_pfx, v_queue.queue_event_seq, v_queue.queue_tick_seq);
    for i in 0..v_queue.queue_ntables - 1 loop
        execute format('grant select on %s_%s to pgque_reader', v_queue.queue_data_pfx, i);
        execute format('grant all on %s_%s to pgque_admin', v_queue.queue_data_pfx, i);
    end loop;
    return 1;
end
$$;
comment on function pgque.grant_perms(text) is 'Set the rights on the tables and sequences of a queue';

revoke all on schema pgque from public;
revoke all on all tables in schema pgque from public;
revoke all on all sequences in schema pgque from public;
revoke all on all routines in schema pgque from public;

grant usage on schema pgque to pgque_reader, pgque_writer;
grant usage, create on schema pgque to pgque_admin;
grant select on all tables in schema pgque to pgque_reader;
grant select on all sequences in schema pgque to pgque_reader;
grant all on all tables in schema pgque to pgque_admin;
grant all on all sequences in schema pgque to pgque_admin;

-- Producing.
grant execute on function
    pgque.dlq_replay(bigint),
    pgque.dlq_replay_all(text),
    pgque.insert_event(text, text, text),
    pgque.insert_event(text, text, text, text, text, text, text),
    pgque.send(text, jsonb),
    pgque.send(text, text),
    pgque.send(text, text, jsonb),
    pgque.send(text, text, text),
    pgque.send_batch(text, jsonb[]),
    pgque.send_batch(text, text, jsonb[]),
    pgque.send_batch(text, text, text[]),
    pgque.send_batch(text, text[])
to pgque_writer;

-- Consuming and looking.
grant execute on function
    pgque.ack(bigint),
    pgque.dlq_inspect(text, integer),
    pgque.engine_version(),
    pgque.event_retry(bigint, bigint, integer),
    pgque.event_retry(bigint, bigint, timestamptz),
    pgque.finish_batch(bigint),
    pgque.get_batch_events(bigint),
    pgque.get_batch_info(bigint),
    pgque.get_consumer_info(),
    pgque.get_consumer_info(text),
    pgque.get_consumer_info(text, text),
    pgque.get_queue_info(),
    pgque.get_queue_info(text),
    pgque.nack(bigint, pgque.message, interval, text),
    pgque.next_batch(text, text),
    pgque.next_batch(text, text, text, interval),
    pgque.next_batch_custom(text, text, interval, integer, interval),
    pgque.next_batch_custom(text, text, text, interval, integer, interval, interval),
    pgque.next_batch_info(text, text),
    pgque.receive(text, text, integer),
    pgque.receive_coop(text, text, text, integer, interval),
    pgque.register_consumer(text, text),
    pgque.register_consumer_at(text, text, bigint),
    pgque.register_subconsumer(text, text, text, boolean),
    pgque.subscribe(text, text),
    pgque.subscribe_subconsumer(text, text, text, boolean),
    pgque.touch_subconsumer(text, text, text),
    pgque.unregister_consumer(text, text),
    pgque.unregister_subconsumer(text, text, text, integer),
    pgque.unsubscribe(text, text),
    pgque.unsubscribe_subconsumer(text, text, text, integer),
    pgque.version()
to pgque_reader;

-- Administration; the admin is a member of both other roles.
grant execute on function
    pgque.batch_retry(bigint, integer),
    pgque.create_queue(text),
    pgque.current_event_table(text),
    pgque.dlq_purge(text, interval),
    pgque.drop_queue(text),
    pgque.drop_queue(text, boolean),
    pgque.event_dead(bigint, bigint, text, timestamptz, xid8, integer, text, text, text, text, text, text),
    pgque.event_retry_raw(text, text, timestamptz, bigint, timestamptz, integer, text, text, text, text, text, text),
    pgque.find_tick_helper(integer, bigint, timestamptz, bigint, bigint, interval),
    pgque.force_next_tick(text),
    pgque.force_tick(text),
    pgque.get_batch_cursor(bigint, text, integer),
    pgque.get_batch_cursor(bigint, text, integer, text),
    pgque.grant_perms(text),
    pgque.insert_event_raw(text, bigint, timestamptz, integer, integer, text, text, text, text, text, text),
    pgque.maint(),
    pgque.maint_operations(),
    pgque.maint_retry_events(),
    pgque.maint_rotate_tables_step1(text),
    pgque.maint_rotate_tables_step2(),
    pgque.maint_tables_to_vacuum(),
    pgque.rebase(),
    pgque.seq_getval(text),
    pgque.seq_setval(text, bigint),
    pgque.set_queue_config(text, text, text),
    pgque.set_tick_period_ms(integer),
    pgque.status(),
    pgque.ticker(),
    pgque.ticker(text),
    pgque.ticker(text, bigint, timestamptz, bigint),
    pgque.tune_storage(text)
to pgque_admin;
grant execute on procedure pgque.ticker_loop() to pgque_admin;
