-- Opening, reading and finishing the batches of a consumer.

create or replace function pgque._find_subscription(i_queue text, i_consumer text)
returns pgque.subscription language plpgsql as $$
declare v_sub pgque.subscription;
begin
    select s.* into v_sub from pgque.queue q
    join pgque.subscription s on s.sub_queue = q.queue_id
    join pgque.consumer c on c.co_id = s.sub_consumer
    where q.queue_name = i_queue and c.co_name = i_consumer;
    return v_sub;
end $$;
comment on function pgque._find_subscription is 'Subscription by names, not locked; NULL fields when there is none';

create or replace function pgque._refuse_subscription(i_sub pgque.subscription, i_queue text, i_consumer text)
returns void language plpgsql as $$
begin
    if i_sub.sub_id is null then raise exception 'Not subscriber to queue: %/%', i_queue, i_consumer; end if;
    if i_sub.sub_role = 'coop_main' then
        raise exception 'consumer % on queue % is a cooperative main consumer; use cooperative receive/next_batch with a subconsumer',
            i_consumer, i_queue;
    end if;
    raise exception 'consumer % on queue % is a cooperative subconsumer; use receive_coop / next_batch (cooperative form) instead of the legacy 5-arg next_batch_custom',
        i_consumer, i_queue;
end $$;
comment on function pgque._refuse_subscription is 'Say why a subscription cannot be read as a normal one';

create or replace function pgque._open_batch(
    i_queue text, i_consumer text, i_min_lag interval, i_min_count integer, i_min_interval interval
) returns pgque._window language plpgsql as $$
-- Looks without any lock, then takes what it saw, unless that has changed: then it
-- looks again. So an idle poll leaves no trace, and a session that waited for
-- another one sees the cursor and the ticks that belong together.
declare v_sub pgque.subscription; v_window pgque._window; v_next_tick bigint;
begin
    loop
        v_sub := pgque._find_subscription(i_queue, i_consumer);
        if v_sub.sub_role is distinct from 'normal' then
            perform pgque._refuse_subscription(v_sub, i_queue, i_consumer);
        end if;
        if v_sub.sub_batch is not null then
            perform from pgque.subscription
            where sub_queue = v_sub.sub_queue and sub_consumer = v_sub.sub_consumer and sub_batch = v_sub.sub_batch
            for no key update;
        else
            v_next_tick := pgque._next_tick(v_sub.sub_queue, v_sub.sub_last_tick, i_min_lag, i_min_count, i_min_interval);
            exit when v_next_tick is null;
            update pgque.subscription
            set sub_batch = nextval('pgque.batch_id_seq'), sub_next_tick = v_next_tick, sub_active = clock_timestamp()
            where sub_queue = v_sub.sub_queue and sub_consumer = v_sub.sub_consumer
                and sub_batch is null and sub_last_tick = v_sub.sub_last_tick and sub_role = 'normal'
            returning sub_batch into v_sub.sub_batch;
        end if;
        exit when found;
    end loop;
    select * into v_window from pgque._window w where w.batch_id = v_sub.sub_batch;
    if v_window.batch_id is not null and (v_window.from_snapshot is null or v_window.to_snapshot is null)
        or v_window.batch_id is null and not exists (
            select from pgque.tick where tick_queue = v_sub.sub_queue and tick_id = v_sub.sub_last_tick)
    then
        raise exception 'PgQ corruption: Consumer % on queue % does not see tick %',
            i_consumer, i_queue, v_sub.sub_last_tick;
    end if;
    return v_window;
end $$;
comment on function pgque._open_batch is 'Open the next batch, or describe the open one; NULL fields when there is none';

create or replace function pgque.next_batch_custom(
    i_queue_name text, i_consumer_name text, i_min_lag interval, i_min_count integer, i_min_interval interval,
    out batch_id bigint, out cur_tick_id bigint, out prev_tick_id bigint, out cur_tick_time timestamptz,
    out prev_tick_time timestamptz, out cur_tick_event_seq bigint, out prev_tick_event_seq bigint
) language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    select w.batch_id, w.to_tick, w.from_tick, w.to_time, w.from_time, w.to_seq, w.from_seq
    into batch_id, cur_tick_id, prev_tick_id, cur_tick_time, prev_tick_time, cur_tick_event_seq, prev_tick_event_seq
    from pgque._open_batch(i_queue_name, i_consumer_name, i_min_lag, i_min_count, i_min_interval) w;
end $$;
comment on function pgque.next_batch_custom(text, text, interval, integer, interval) is
'Open the next batch of a wanted age or size, or give the open one again; NULL when there is none. A second session of the same consumer waits for the commit of the first';

create or replace function pgque.next_batch_info(
    i_queue_name text, i_consumer_name text, out batch_id bigint, out cur_tick_id bigint, out prev_tick_id bigint,
    out cur_tick_time timestamptz, out prev_tick_time timestamptz, out cur_tick_event_seq bigint,
    out prev_tick_event_seq bigint
) language sql as $$ select * from pgque.next_batch_custom(i_queue_name, i_consumer_name, null, null, null) $$;
comment on function pgque.next_batch_info is 'Open the next batch and describe it';

create or replace function pgque.get_batch_events(
    x_batch_id bigint, out ev_id bigint, out ev_time timestamptz, out ev_txid bigint, out ev_retry integer,
    out ev_type text, out ev_data text, out ev_extra1 text, out ev_extra2 text, out ev_extra3 text, out ev_extra4 text
) returns setof record language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    return query
    select e.ev_id, e.ev_time, e.ev_txid::text::bigint, e.ev_retry, e.ev_type, e.ev_data,
        e.ev_extra1, e.ev_extra2, e.ev_extra3, e.ev_extra4
    from pgque._read(pgque._readable_batch(x_batch_id), null) e order by e.ev_id;
end $$;
comment on function pgque.get_batch_events is 'All events of an open batch in the order of their ids; may be read through a cursor in pages';

create or replace function pgque.get_batch_cursor(
    i_batch_id bigint, i_cursor_name text, i_quick_limit integer, i_extra_where text, out ev_id bigint,
    out ev_time timestamptz, out ev_txid bigint, out ev_retry integer, out ev_type text, out ev_data text,
    out ev_extra1 text, out ev_extra2 text, out ev_extra3 text, out ev_extra4 text
) returns setof record language plpgsql as $$
declare v_cursor refcursor := i_cursor_name;
begin
    open v_cursor no scroll for execute format('select * from pgque.get_batch_events(%s) where %s',
        i_batch_id, coalesce(i_extra_where, 'true'));
    for i in 1..i_quick_limit loop
        fetch v_cursor into ev_id, ev_time, ev_txid, ev_retry, ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4;
        exit when not found;
        return next;
    end loop;
end $$;
comment on function pgque.get_batch_cursor(bigint, text, integer, text) is 'Open a named cursor over a batch, narrowed by a piece of SQL, and return its first rows';

create or replace function pgque.ack(i_batch_id bigint)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    update pgque.subscription
    set sub_last_tick = case when sub_role = 'normal' then sub_next_tick end, sub_next_tick = null, sub_batch = null,
        sub_active = clock_timestamp()
    where sub_batch = i_batch_id and sub_role <> 'coop_main';
    if found then return 1; end if;
    if exists (select from pgque.subscription where sub_batch = i_batch_id) then
        raise exception 'cannot finish cooperative main consumer batch % as normal active consumer', i_batch_id;
    end if;
    raise warning 'finish_batch: batch % not found', i_batch_id;
    return 0;
end $$;
comment on function pgque.ack is
'Finish a whole batch, also events never read, and move the cursor: 1, or 0 with a warning when the batch is no longer open, as after a takeover';

create or replace function pgque._refuse_overflow(i_function text, i_count bigint, i_max_return integer)
returns void language plpgsql as $$
begin
    if i_count > i_max_return then
        raise exception 'pgque.%: batch exceeds max_return of %', i_function, i_max_return
            using errcode = 'program_limit_exceeded',
                hint = 'Retry with a larger resource-safe max_return to receive the complete batch. '
                    'Do not acknowledge after this error.';
    end if;
end $$;
comment on function pgque._refuse_overflow is 'Raise when a batch is larger than the caller allows';

create or replace function pgque.receive(i_queue text, i_consumer text, i_max_return integer default 100)
returns setof pgque.message language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
-- Asks for one event more than allowed: an overflow is noticed cheaply.
declare v_batch pgque._window; v_count bigint;
begin
    if i_max_return < 1 then raise exception 'pgque.receive: max_return must be >= 1, got %', i_max_return; end if;
    loop
        v_batch := pgque._open_batch(i_queue, i_consumer, null, null, null);
        exit when v_batch.batch_id is null;
        return query
        select e.ev_id, v_batch.batch_id, e.ev_type, e.ev_data, e.ev_retry, e.ev_time,
            e.ev_extra1, e.ev_extra2, e.ev_extra3, e.ev_extra4
        from pgque._read(v_batch, i_max_return::bigint + 1) e order by e.ev_id limit i_max_return::bigint + 1;
        get diagnostics v_count = row_count;
        perform pgque._refuse_overflow('receive', v_count, i_max_return);
        exit when v_count > 0;
        perform pgque.ack(v_batch.batch_id);
    end loop;
end $$;
comment on function pgque.receive is
'Whole next batch, or the open one again; empty windows are finished on the way. A batch above max_return raises 54000 and changes nothing; NULL is no limit';
