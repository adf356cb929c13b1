-- Roles and grants. Roles belong to the whole server: they are made only when
-- missing, and other installations may be making them at the same moment.
-- PUBLIC gets nothing: payloads are for readers only.

do $$
declare v_role text;
begin
    foreach v_role in array array['pgque_reader', 'pgque_writer', 'pgque_admin'] loop
        begin
            if to_regrole(v_role) is null then execute format('create role %I nologin', v_role); end if;
        exception when duplicate_object or unique_violation then
            null;
        end;
    end loop;
    foreach v_role in array array['pgque_reader', 'pgque_writer'] loop
        begin
            if not pg_has_role('pgque_admin', v_role, 'member') then execute format('grant %I to pgque_admin', v_role); end if;
        exception when unique_violation then
            null;
        end;
    end loop;
end $$;

create or replace function pgque.grant_perms(x_queue_name text)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare
    v_queue pgque.queue := pgque._queue(x_queue_name, 'Queue not found');
    v_tables text := (select string_agg(t, ', ') from pgque._event_tables(v_queue) t);
begin
    v_tables := format('%s, pgque.%I', v_tables, 'event_' || v_queue.queue_id);
    execute format('revoke all on %s from public', v_tables);
    execute format('grant select on %s to pgque_reader', v_tables);
    execute format('grant all on %s to pgque_admin', v_tables);
    v_tables := format('pgque.%I, pgque.%I', 'event_' || v_queue.queue_id || '_id_seq', 'event_' || v_queue.queue_id || '_tick_seq');
    execute format('revoke all on sequence %s from public', v_tables);
    execute format('grant select on sequence %s to pgque_reader', v_tables);
    execute format('grant all on sequence %s to pgque_admin', v_tables);
    return 1;
end $$;
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

do $$
-- All overloads of a name go to one role; the admin is a member of the two others.
declare v_grant record;
begin
    for v_grant in
        select p.oid::regprocedure as routine, r.role
        from (values
            ('pgque_writer', 'dlq_replay dlq_replay_all insert_event send send_batch'),
            ('pgque_reader', 'ack dlq_inspect engine_version event_retry finish_batch get_batch_events get_batch_info'
                ' get_consumer_info get_queue_info nack next_batch next_batch_custom next_batch_info receive receive_coop'
                ' register_consumer register_consumer_at register_subconsumer subscribe subscribe_subconsumer'
                ' touch_subconsumer unregister_consumer unregister_subconsumer unsubscribe unsubscribe_subconsumer version'),
            ('pgque_admin', 'batch_retry create_queue current_event_table dlq_purge drop_queue event_dead event_retry_raw'
                ' find_tick_helper force_next_tick force_tick get_batch_cursor grant_perms insert_event_raw maint'
                ' maint_operations maint_retry_events maint_rotate_tables_step1 maint_rotate_tables_step2'
                ' maint_tables_to_vacuum rebase set_queue_config set_tick_period_ms status ticker'
                ' ticker_loop tune_storage')
        ) r (role, names)
        join pg_proc p on p.pronamespace = 'pgque'::regnamespace and p.proname = any (string_to_array(r.names, ' '))
    loop
        execute format('grant execute on routine %s to %I', v_grant.routine, v_grant.role);
    end loop;
end $$;
