-- Retries: an event that a consumer could not handle waits in retry_queue and is
-- then written again for that subscription only, with its id and a higher count.

create or replace function pgque._retry_event(
    i_batch pgque._window, i_event pgque.event_template, i_retry_after timestamptz
) returns integer language plpgsql as $$
begin
    insert into pgque.retry_queue values (
        i_retry_after, i_batch.queue_id, i_event.ev_id, i_event.ev_time, null, i_batch.sub_id,
        coalesce(i_event.ev_retry, 0) + 1, i_event.ev_type, i_event.ev_data,
        i_event.ev_extra1, i_event.ev_extra2, i_event.ev_extra3, i_event.ev_extra4
    ) on conflict do nothing;
    return found::integer;
end $$;
comment on function pgque._retry_event is 'Put an event into the retry queue: 1, or 0 when it is there already';

create or replace function pgque._bury_event(i_batch pgque._window, i_event pgque.event_template, i_reason text)
returns void language plpgsql as $$
-- Members of a group come and go: their dead letters belong to the main consumer.
begin
    insert into pgque.dead_letter (
        dl_queue_id, dl_consumer_id, dl_reason, ev_id, ev_time, ev_txid, ev_retry,
        ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4
    )
    select s.sub_queue, s.sub_consumer, i_reason, i_event.ev_id, i_event.ev_time, i_event.ev_txid, i_event.ev_retry,
        i_event.ev_type, i_event.ev_data, i_event.ev_extra1, i_event.ev_extra2, i_event.ev_extra3, i_event.ev_extra4
    from pgque.subscription s
    where s.sub_queue = i_batch.queue_id and s.sub_id = i_batch.sub_id and s.sub_role <> 'coop_member'
    on conflict do nothing;
end $$;
comment on function pgque._bury_event is 'Make an event a dead letter, once per consumer';

create or replace function pgque._fail_event(
    i_batch pgque._window, i_event pgque.event_template, i_retry_after timestamptz, i_reason text
) returns void language plpgsql as $$
begin
    if coalesce(i_event.ev_retry, 0)
        >= (select coalesce(q.queue_max_retries, 5) from pgque.queue q where q.queue_id = i_batch.queue_id)
    then
        perform pgque._bury_event(i_batch, i_event, i_reason);
    else
        perform pgque._retry_event(i_batch, i_event, i_retry_after);
    end if;
end $$;
comment on function pgque._fail_event is 'Retry an event, or make it a dead letter when its retries ran out: the rule for nack and for removed members';

create or replace function pgque.nack(
    i_batch_id bigint, i_msg pgque.message, i_retry_after interval default '00:01:00', i_reason text default null
) returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
-- Of the message only the id counts: everything else is read from the event.
declare v_batch pgque._window := pgque._batch(i_batch_id, true); v_event pgque.event_template;
begin
    if v_batch.batch_id is null then raise exception 'batch not found: %', i_batch_id; end if;
    v_event := pgque._find(v_batch, i_msg.msg_id);
    if v_event.ev_id is null then raise exception 'msg_id % not found in batch %', i_msg.msg_id, i_batch_id; end if;
    perform pgque._fail_event(v_batch, v_event,
        now() + make_interval(secs => round(extract(epoch from coalesce(i_retry_after, '1 minute')))::double precision),
        coalesce(i_reason, 'max retries exceeded'));
    return 1;
end $$;
comment on function pgque.nack is
'Send one message of an open batch back for later, or to the dead letters when its retries ran out. The batch stays open: ack it in the same transaction';

create or replace function pgque.event_retry(x_batch_id bigint, x_event_id bigint, x_retry_time timestamptz)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_batch pgque._window := pgque._batch(x_batch_id, true); v_event pgque.event_template;
begin
    if v_batch.batch_id is not null then v_event := pgque._find(pgque._readable_batch(x_batch_id), x_event_id); end if;
    if v_event.ev_id is null then raise exception 'event not found'; end if;
    return pgque._retry_event(v_batch, v_event, x_retry_time);
end $$;
comment on function pgque.event_retry(bigint, bigint, timestamptz) is 'Retry one event at a time, whatever its count: 1, or 0 when it waits already';

create or replace function pgque.event_retry_raw(
    x_queue text, x_consumer text, x_retry_after timestamptz, x_ev_id bigint, x_ev_time timestamptz,
    x_ev_retry integer, x_ev_type text, x_ev_data text, x_ev_extra1 text, x_ev_extra2 text, x_ev_extra3 text,
    x_ev_extra4 text
) returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_sub pgque.subscription := pgque._find_subscription(x_queue, x_consumer); v_id bigint := x_ev_id;
begin
    if v_sub.sub_id is null then raise exception 'consumer not registered'; end if;
    if v_id is null then v_id := nextval((pgque._queue(x_queue)).queue_event_seq::regclass); end if;
    insert into pgque.retry_queue values (
        x_retry_after, v_sub.sub_queue, v_id, x_ev_time, null, v_sub.sub_id, x_ev_retry, x_ev_type, x_ev_data,
        x_ev_extra1, x_ev_extra2, x_ev_extra3, x_ev_extra4
    );
    return v_id;
end $$;
comment on function pgque.event_retry_raw is 'Put an event with every field given into the retry queue of a consumer';

create or replace function pgque.batch_retry(i_batch_id bigint, i_retry_seconds integer)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_batch pgque._window := pgque._batch(i_batch_id, true); v_event pgque.event_template; v_count integer := 0;
begin
    if v_batch.batch_id is null then raise exception 'batch_retry: batch % not found', i_batch_id; end if;
    for v_event in select * from pgque._read(pgque._readable_batch(i_batch_id), null) loop
        v_count := v_count + pgque._retry_event(v_batch, v_event, now() + make_interval(secs => i_retry_seconds));
    end loop;
    return v_count;
end $$;
comment on function pgque.batch_retry is 'Retry every event of a batch, whatever its count; the number of events newly queued';

create or replace function pgque._reinsert_due(i_queue pgque.queue) returns integer language plpgsql as $$
-- Each event uses up a sequence value, so that the ticker counts it as new.
declare v_count integer;
begin
    execute format('with due as materialized ('
        ' delete from pgque.retry_queue r using ('
        '  select d.ev_owner, d.ev_id from pgque.retry_queue d'
        '  where d.ev_queue = $1 and d.ev_retry_after <= now() for update skip locked) l'
        ' where r.ev_owner = l.ev_owner and r.ev_id = l.ev_id returning r.*, nextval($2::regclass))'
        ' insert into %s'
        ' select ev_id, ev_time, pg_current_xact_id(), ev_owner, ev_retry, ev_type, ev_data,'
        ' ev_extra1, ev_extra2, ev_extra3, ev_extra4 from due order by ev_id',
        pgque._event_table(i_queue)) using i_queue.queue_id, i_queue.queue_event_seq;
    get diagnostics v_count = row_count;
    return v_count;
end $$;
comment on function pgque._reinsert_due is 'Write the due retries of a queue into its event table again';

create or replace function pgque.maint_retry_events()
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_queue pgque.queue; v_count integer := 0;
begin
    for v_queue in
        select * from pgque.queue q where not q.queue_disable_insert
            and exists (select from pgque.retry_queue r where r.ev_queue = q.queue_id and r.ev_retry_after <= now())
        order by q.queue_name
    loop
        begin
            v_count := v_count + pgque._reinsert_due(v_queue);
        exception when others then
            raise warning 'pgque.maint_retry_events: queue % skipped: %', v_queue.queue_name, sqlerrm;
        end;
    end loop;
    return v_count;
end $$;
comment on function pgque.maint_retry_events is
'Bring all due retries back into their queues; their number. A queue that refuses is skipped with a warning, its retries stay';
