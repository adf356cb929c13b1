-- Batches: the window between two ticks, opened for one consumer at a time.
-- Which events belong to it is computed from the two snapshots at each read;
-- nothing is stored but the cursor.

create or replace function pgque._window_between(i_queue_id integer, i_from_tick bigint, i_to_tick bigint)
returns pgque._window language plpgsql as $$
declare
    v_window pgque._window;
begin
    select null, f.tick_queue, null, f.tick_id, t.tick_id, f.tick_time, t.tick_time,
        f.tick_event_seq, t.tick_event_seq, f.tick_snapshot, t.tick_snapshot
    into v_window
    from pgque.tick f
    join pgque.tick t on t.tick_queue = f.tick_queue and t.tick_id = i_to_tick
    where f.tick_queue = i_queue_id and f.tick_id = i_from_tick;
    return v_window;
end
$$;
comment on function pgque._window_between(integer, bigint, bigint) is
'Window between two ticks, without batch and subscription; NULL fields when a tick is missing';

create or replace function pgque._describe_window(i_sub pgque.subscription)
returns pgque._window language plpgsql as $$
declare
    v_window pgque._window := pgque._window_between(i_sub.sub_queue, i_sub.sub_last_tick, i_sub.sub_next_tick);
begin
    v_window.batch_id := i_sub.sub_batch;
    v_window.sub_id := i_sub.sub_id;
    return v_window;
end
$$;
comment on function pgque._describe_window(pgque.subscription) is
'Window of the open batch of a subscription; NULL ticks when one is missing';

create or replace function pgque._batch_window(i_batch_id bigint)
returns pgque._window language plpgsql as $$
declare
    v_sub pgque.subscription;
    v_window pgque._window;
begin
    select * into v_sub from pgque.subscription where sub_batch = i_batch_id;
    if not found then
        raise exception 'batch not found: %', i_batch_id;
    end if;
    v_window := pgque._describe_window(v_sub);
    if v_window.queue_id is null then
        raise exception 'Cannot find data for batch %', i_batch_id;
    end if;
    return v_window;
end
$$;
comment on function pgque._batch_window(bigint) is 'Window of an open batch; raises when there is none';

create or replace function pgque.find_tick_helper(
    i_queue_id integer, i_prev_tick_id bigint, i_prev_tick_time timestamptz, i_prev_tick_seq bigint,
    i_min_count bigint, i_min_interval interval, out next_tick_id bigint, out next_tick_time timestamptz,
    out next_tick_seq bigint
) language plpgsql stable as $$
-- A backlog of more than twice the wish is cut at the first tick that fulfils it.
declare
    v_new pgque.tick;
begin
    select * into v_new
    from pgque.tick
    where tick_queue = i_queue_id and tick_id > i_prev_tick_id
    order by tick_id desc
    limit 1;
    if v_new.tick_event_seq - i_prev_tick_seq > 2 * i_min_count
        or v_new.tick_time - i_prev_tick_time > 2 * i_min_interval
    then
        select * into v_new
        from pgque.tick
        where tick_queue = i_queue_id
            and tick_id > i_prev_tick_id
            and (tick_event_seq - i_prev_tick_seq >= i_min_count or tick_time - i_prev_tick_time >= i_min_interval)
        order by tick_id
        limit 1;
    end if;
    if v_new.tick_event_seq - i_prev_tick_seq >= i_min_count
        or v_new.tick_time - i_prev_tick_time >= i_min_interval
    then
        next_tick_id := v_new.tick_id;
        next_tick_time := v_new.tick_time;
        next_tick_seq := v_new.tick_event_seq;
    end if;
end
$$;
comment on function pgque.find_tick_helper(integer, bigint, timestamptz, bigint, bigint, interval) is
'Tick at which a batch of a wanted size or age ends; NULL when there is not enough yet';

create or replace function pgque._next_window(
    i_queue_id integer, i_from_tick bigint, i_min_lag interval, i_min_count bigint, i_min_interval interval
) returns pgque._window language plpgsql as $$
-- Ticks between which no event was sent are passed over in one window: it ends at
-- the first tick with a new event count, else at the newest one. That loses
-- nothing, for a window may always be joined with the next.
declare
    v_window pgque._window;
    v_end_tick bigint;
begin
    select null, f.tick_queue, null, f.tick_id, t.tick_id, f.tick_time, t.tick_time,
        f.tick_event_seq, t.tick_event_seq, f.tick_snapshot, t.tick_snapshot
    into v_window
    from pgque.tick f
    cross join lateral (
        select *
        from pgque.tick n
        where n.tick_queue = f.tick_queue and n.tick_id > f.tick_id and n.tick_event_seq <> f.tick_event_seq
        order by n.tick_id
        limit 1
    ) t
    where f.tick_queue = i_queue_id and f.tick_id = i_from_tick;

    if i_min_count is not null or i_min_interval is not null then
        select h.next_tick_id into v_end_tick
        from pgque.tick f
        cross join pgque.find_tick_helper(
            i_queue_id, f.tick_id, f.tick_time, f.tick_event_seq, i_min_count, i_min_interval) h
        where f.tick_queue = i_queue_id and f.tick_id = i_from_tick;
        v_window := pgque._window_between(i_queue_id, i_from_tick, v_end_tick);
    elsif v_window.to_tick is null then
        select max(tick_id) into v_end_tick from pgque.tick where tick_queue = i_queue_id;
        if v_end_tick > i_from_tick then
            v_window := pgque._window_between(i_queue_id, i_from_tick, v_end_tick);
        end if;
    end if;
    if now() - v_window.to_time < i_min_lag then
        return null;
    end if;
    return v_window;
end
$$;
comment on function pgque._next_window(integer, bigint, interval, bigint, interval) is
'Next window of a cursor, without batch and subscription; NULL fields when there is none yet';
