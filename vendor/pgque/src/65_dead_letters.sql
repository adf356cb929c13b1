-- Dead letters: events that a consumer gave up, kept with the reason until they
-- are replayed or purged.

create or replace function pgque.event_dead(
    i_batch_id bigint, i_event_id bigint, i_reason text, i_ev_time timestamptz, i_ev_txid xid8, i_ev_retry integer,
    i_ev_type text, i_ev_data text, i_ev_extra1 text default null, i_ev_extra2 text default null,
    i_ev_extra3 text default null, i_ev_extra4 text default null
) returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_batch pgque._window := pgque._batch(i_batch_id, true);
begin
    if v_batch.batch_id is null then raise exception 'batch not found: %', i_batch_id; end if;
    perform pgque._bury_event(v_batch,
        row(i_event_id, i_ev_time, i_ev_txid, null, i_ev_retry, i_ev_type, i_ev_data,
            i_ev_extra1, i_ev_extra2, i_ev_extra3, i_ev_extra4)::pgque.event_template,
        i_reason);
    return 1;
end $$;
comment on function pgque.event_dead is 'Make a dead letter from the given fields, for the consumer that holds the batch';

create or replace function pgque.dlq_inspect(i_queue_name text, i_limit_count integer default 100)
returns setof pgque.dead_letter language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    return query
    select d.* from pgque.dead_letter d join pgque.queue q on q.queue_id = d.dl_queue_id
    where q.queue_name = i_queue_name order by d.dl_time desc, d.dl_id desc limit i_limit_count;
end $$;
comment on function pgque.dlq_inspect is 'Dead letters of a queue, newest first';

create or replace function pgque.dlq_replay(i_dead_letter_id bigint)
returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
-- Deleting first makes a second replay of the same letter wait and find nothing.
declare v_letter pgque.dead_letter; v_owner integer; v_queue_name text;
begin
    delete from pgque.dead_letter where dl_id = i_dead_letter_id returning * into v_letter;
    if not found then raise exception 'dead letter entry not found: %', i_dead_letter_id; end if;
    select s.sub_id into v_owner from pgque.subscription s
    where s.sub_queue = v_letter.dl_queue_id and s.sub_consumer = v_letter.dl_consumer_id;
    if not found then
        raise exception 'consumer not registered'
            using hint = 'Subscribe the consumer of this dead letter again, then replay it.';
    end if;
    select q.queue_name into v_queue_name from pgque.queue q where q.queue_id = v_letter.dl_queue_id;
    return pgque.insert_event_raw(
        v_queue_name, null, now(), v_owner, null, v_letter.ev_type, v_letter.ev_data,
        v_letter.ev_extra1, v_letter.ev_extra2, v_letter.ev_extra3, v_letter.ev_extra4);
end $$;
comment on function pgque.dlq_replay is 'Send a dead letter again, as a new event and only to the consumer that gave it up; returns the new event id';

create or replace function pgque.dlq_replay_all(
    i_queue_name text, out replayed bigint, out failed bigint, out first_error text
) language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_id bigint;
begin
    replayed := 0; failed := 0;
    for v_id in
        select d.dl_id from pgque.dead_letter d join pgque.queue q on q.queue_id = d.dl_queue_id
        where q.queue_name = i_queue_name order by d.dl_id for update of d skip locked
    loop
        begin
            perform pgque.dlq_replay(v_id);
            replayed := replayed + 1;
        exception when others then
            failed := failed + 1;
            first_error := coalesce(first_error, format('dl_id=%s: %s', v_id, sqlerrm));
            raise warning 'dlq_replay_all: failed to replay dl_id=%, error: %', v_id, sqlerrm;
        end;
    end loop;
end $$;
comment on function pgque.dlq_replay_all is 'Replay the dead letters of a queue one by one; those that fail stay. Letters that another session replays are left to it';

create or replace function pgque.dlq_purge(i_queue_name text, i_older_than interval default '30 days')
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_count integer;
begin
    delete from pgque.dead_letter d using pgque.queue q
    where q.queue_id = d.dl_queue_id and q.queue_name = i_queue_name and d.dl_time < now() - i_older_than;
    get diagnostics v_count = row_count;
    return v_count;
end $$;
comment on function pgque.dlq_purge is 'Delete dead letters older than an interval; their number';
