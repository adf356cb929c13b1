-- Retries: an event that a consumer could not handle waits in retry_queue and is
-- then written again for that subscription only, with its id and a higher count.

create or replace function pgque._lock_batch(i_batch_id bigint)
returns pgque.subscription language plpgsql as $$
-- Held until commit, so that no takeover slips between a nack and its ack.
declare
    v_sub pgque.subscription;
begin
    select * into v_sub from pgque.subscription where sub_batch = i_batch_id for no key update;
    return v_sub;
end
$$;
comment on function pgque._lock_batch(bigint) is 'Subscription that holds a batch, locked; NULL fields when there is none';

create or replace function pgque._retry_event(
    i_sub pgque.subscription, i_event pgque.event_template, i_retry_after timestamptz
) returns integer language plpgsql as $$
begin
    insert into pgque.retry_queue (
        ev_retry_after, ev_queue, ev_id, ev_time, ev_owner, ev_retry,
        ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4
    )
    values (
        i_retry_after, i_sub.sub_queue, i_event.ev_id, i_event.ev_time, i_sub.sub_id,
        coalesce(i_event.ev_retry, 0) + 1, i_event.ev_type, i_event.ev_data,
        i_event.ev_extra1, i_event.ev_extra2, i_event.ev_extra3, i_event.ev_extra4
    )
    on conflict do nothing;
    return found::integer;
end
$$;
comment on function pgque._retry_event(pgque.subscription, pgque.event_template, timestamptz) is
'Put an event into the retry queue: 1, or 0 when it is there already';

create or replace function pgque._fail_event(
    i_sub pgque.subscription, i_event pgque.event_template, i_retry_after timestamptz, i_reason text
) returns void language plpgsql as $$
-- The rule of retries and dead letters, for nack and for removed members.
begin
    if coalesce(i_event.ev_retry, 0)
        >= (select coalesce(q.queue_max_retries, 5) from pgque.queue q where q.queue_id = i_sub.sub_queue)
    then
        perform pgque._bury_event(i_sub, i_event, i_reason);
    else
        perform pgque._retry_event(i_sub, i_event, i_retry_after);
    end if;
end
$$;
comment on function pgque._fail_event(pgque.subscription, pgque.event_template, timestamptz, text) is
'Retry an event, or make it a dead letter when its retries ran out';

create or replace function pgque.nack(
    i_batch_id bigint, i_msg pgque.message, i_retry_after interval default '00:01:00', i_reason text default null
) returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
-- Of the message only the id counts: everything else is read from the event.
declare
    v_sub pgque.subscription := pgque._lock_batch(i_batch_id);
    v_event pgque.event_template;
begin
    if v_sub.sub_id is null then
        raise exception 'batch not found: %', i_batch_id;
    end if;
    v_event := pgque._find_event(
        pgque._describe_window(v_sub), i_msg.msg_id);
    if v_event.ev_id is null then
        raise exception 'msg_id % not found in batch %', i_msg.msg_id, i_batch_id;
    end if;
    perform pgque._fail_event(
        v_sub, v_event,
        now() + make_interval(secs => round(extract(epoch from coalesce(i_retry_after, '1 minute')))::double precision),
        coalesce(i_reason, 'max retries exceeded'));
    return 1;
end
$$;
comment on function pgque.nack(bigint, pgque.message, interval, text) is
'Send one message of an open batch back for later, or to the dead letters when its retries ran out. The batch stays open: ack it in the same transaction';

create or replace function pgque.event_retry(x_batch_id bigint, x_event_id bigint, x_retry_time timestamptz)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare
    v_sub pgque.subscription := pgque._lock_batch(x_batch_id);
    v_event pgque.event_template;
begin
    if v_sub.sub_id is not null then
        v_event := pgque._find_event(pgque._batch_window(x_batch_id), x_event_id);
    end if;
    if v_event.ev_id is null then
        raise exception 'event not found';
    end if;
    return pgque._retry_event(v_sub, v_event, x_retry_time);
end
$$;
comment on function pgque.event_retry(bigint, bigint, timestamptz) is
'Retry one event at a time, whatever its count: 1, or 0 when it waits already';

create or replace function pgque.event_retry(x_batch_id bigint, x_event_id bigint, x_retry_seconds integer)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin return pgque.event_retry(x_batch_id, x_event_id, now() + make_interval(secs => x_retry_seconds)); end $$;
comment on function pgque.event_retry(bigint, bigint, integer) is
'Retry one event after some seconds, whatever its count: 1, or 0 when it waits already';

create or replace function pgque.event_retry_raw(
    x_queue text, x_consumer text, x_retry_after timestamptz, x_ev_id bigint, x_ev_time timestamptz,
    x_ev_retry integer, x_ev_type text, x_ev_data text, x_ev_extra1 text, x_ev_extra2 text, x_ev_extra3 text,
    x_ev_extra4 text
) returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare
    v_sub pgque.subscription := pgque._find_subscription(x_queue, x_consumer);
    v_id bigint;
begin
    if v_sub.sub_id is null then
        raise exception 'consumer not registered';
    end if;
    v_id := coalesce(x_ev_id, (
        select nextval(q.queue_event_seq::regclass) from pgque.queue q where q.queue_id = v_sub.sub_queue));
    insert into pgque.retry_queue (
        ev_retry_after, ev_queue, ev_id, ev_time, ev_owner, ev_retry,
        ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4
    )
    values (
        x_retry_after, v_sub.sub_queue, v_id, x_ev_time, v_sub.sub_id, x_ev_retry,
        x_ev_type, x_ev_data, x_ev_extra1, x_ev_extra2, x_ev_extra3, x_ev_extra4
    );
    return v_id;
end
$$;
comment on function pgque.event_retry_raw(
    text, text, timestamptz, bigint, timestamptz, integer, text, text, text, text, text, text
) is 'Put an event with every field given into the retry queue of a consumer';

create or replace function pgque.batch_retry(i_batch_id bigint, i_retry_seconds integer)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare
    v_sub pgque.subscription := pgque._lock_batch(i_batch_id);
    v_event pgque.event_template;
    v_count integer := 0;
begin
    if v_sub.sub_id is null then
        raise exception 'batch_retry: batch % not found', i_batch_id;
    end if;
    for v_event in execute format('select * from pgque._read_%s($1, null)', v_sub.sub_queue)
        using pgque._batch_window(i_batch_id)
    loop
        v_count := v_count + pgque._retry_event(v_sub, v_event, now() + make_interval(secs => i_retry_seconds));
    end loop;
    return v_count;
end
$$;
comment on function pgque.batch_retry(bigint, integer) is
'Retry every event of a batch, whatever its count; the number of events newly queued';

create or replace function pgque._reinsert_due(i_queue_id integer)
returns integer language plpgsql as $$
-- Each event uses up a sequence value, so that the ticker counts it as new.
declare
    v_queue pgque.queue;
    v_count integer;
begin
    select * into v_queue from pgque.queue where queue_id = i_queue_id;
    execute format('with due as materialized ('
        ' delete from pgque.retry_queue r using ('
        '  select d.ev_owner, d.ev_id from pgque.retry_queue d'
        '  where d.ev_queue = $1 and d.ev_retry_after <= now() for update skip locked) l'
        ' where r.ev_owner = l.ev_owner and r.ev_id = l.ev_id returning r.*, nextval($2::regclass))'
        ' insert into %s_%s'
        ' select ev_id, ev_time, pg_current_xact_id(), ev_owner, ev_retry, ev_type, ev_data,'
        ' ev_extra1, ev_extra2, ev_extra3, ev_extra4 from due order by ev_id',
        v_queue.queue_data_pfx, v_queue.queue_cur_table)
    using i_queue_id, v_queue.queue_event_seq;
    get diagnostics v_count = row_count;
    return v_count;
end
$$;
comment on function pgque._reinsert_due(integer) is 'Write the due retries of a queue into its event table again';

create or replace function pgque.maint_retry_events()
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare
    v_queue record;
    v_count integer := 0;
begin
    for v_queue in
        select q.queue_id, q.queue_name
        from pgque.queue q
        where not q.queue_disable_insert
            and exists (
                select from pgque.retry_queue r where r.ev_queue = q.queue_id and r.ev_retry_after <= now()
            )
        order by q.queue_name
    loop
        begin
            v_count := v_count + pgque._reinsert_due(v_queue.queue_id);
        exception when others then
            raise warning 'pgque.maint_retry_events: queue % skipped: %', v_queue.queue_name, sqlerrm;
        end;
    end loop;
    return v_count;
end
$$;
comment on function pgque.maint_retry_events() is
'Bring all due retries back into their queues; their number. A queue that refuses is skipped with a warning, its retries stay';
