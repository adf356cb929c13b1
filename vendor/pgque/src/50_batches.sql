-- Batches: the window between two ticks, opened for one consumer at a time.
-- Which events belong to it is computed from the two snapshots at each read;
-- nothing is stored but the cursor.

create or replace function pgque._batch(i_batch_id bigint, i_lock boolean default false)
returns pgque._window language plpgsql as $$
-- The lock is held until commit, so that no takeover slips between a nack and its ack.
declare v_window pgque._window;
begin
    if i_lock then perform from pgque.subscription where sub_batch = i_batch_id for no key update; end if;
    select * into v_window from pgque._window w where w.batch_id = i_batch_id;
    return v_window;
end $$;
comment on function pgque._batch is 'Open batch; NULL fields when there is none';

create or replace function pgque._readable_batch(i_batch_id bigint) returns pgque._window language plpgsql as $$
declare v_window pgque._window := pgque._batch(i_batch_id);
begin
    if v_window.batch_id is null then raise exception 'batch not found: %', i_batch_id; end if;
    if v_window.from_snapshot is null or v_window.to_snapshot is null then
        raise exception 'Cannot find data for batch %', i_batch_id;
    end if;
    return v_window;
end $$;
comment on function pgque._readable_batch is 'Open batch; raises when there is none, or a tick of it is gone';

create or replace function pgque.find_tick_helper(
    i_queue_id integer, i_prev_tick_id bigint, i_prev_tick_time timestamptz, i_prev_tick_seq bigint,
    i_min_count bigint, i_min_interval interval, out next_tick_id bigint, out next_tick_time timestamptz,
    out next_tick_seq bigint
) language sql stable as $$
-- The newest tick, if it fulfils a wish; from a backlog of more than twice the wish
-- the first tick that fulfils it.
select t.tick_id, t.tick_time, t.tick_event_seq
from (select * from pgque.tick where tick_queue = i_queue_id order by tick_id desc limit 1) newest
join pgque.tick t on t.tick_queue = i_queue_id and t.tick_id > i_prev_tick_id and (t.tick_id = newest.tick_id
    or newest.tick_event_seq - i_prev_tick_seq > 2 * i_min_count or newest.tick_time - i_prev_tick_time > 2 * i_min_interval)
where t.tick_event_seq - i_prev_tick_seq >= i_min_count or t.tick_time - i_prev_tick_time >= i_min_interval
order by t.tick_id limit 1
$$;
comment on function pgque.find_tick_helper is 'Tick at which a batch of a wanted size or age ends; NULL when there is not enough yet';

create or replace function pgque._next_tick(
    i_queue_id integer, i_from_tick bigint, i_min_lag interval, i_min_count bigint, i_min_interval interval
) returns bigint language plpgsql as $$
-- Ticks between which no event was sent are passed over in one window: it ends at
-- the first tick with a new event count, else at the newest one. That loses
-- nothing, for a window may always be joined with the next.
declare v_id bigint; v_time timestamptz;
begin
    if i_min_count is not null or i_min_interval is not null then
        select h.next_tick_id, h.next_tick_time into v_id, v_time from pgque.tick f
        cross join pgque.find_tick_helper(
            i_queue_id, f.tick_id, f.tick_time, f.tick_event_seq, i_min_count, i_min_interval) h
        where f.tick_queue = i_queue_id and f.tick_id = i_from_tick;
    else
        select n.tick_id, n.tick_time into v_id, v_time from pgque.tick f
        cross join lateral (
            select * from pgque.tick t
            where t.tick_queue = f.tick_queue and t.tick_id > f.tick_id and t.tick_event_seq <> f.tick_event_seq
            order by t.tick_id limit 1
        ) n
        where f.tick_queue = i_queue_id and f.tick_id = i_from_tick;
        if not found then
            select n.tick_id, n.tick_time into v_id, v_time from pgque.tick n
            where n.tick_queue = i_queue_id and n.tick_id > i_from_tick order by n.tick_id desc limit 1;
        end if;
    end if;
    return case when now() - v_time < i_min_lag then null else v_id end;
end $$;
comment on function pgque._next_tick is 'Tick at which the next window of a cursor ends; NULL when there is none yet';
