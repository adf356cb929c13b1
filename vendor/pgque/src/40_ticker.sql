-- The ticker: decides when a queue is due and records a snapshot. Ticks of one
-- queue are taken one at a time under an advisory lock that lives until commit;
-- the snapshot is that of a statement begun after the lock was obtained.
-- A pass that finds nothing due writes nothing and uses no transaction id.

create or replace function pgque._refuse_old_snapshot() returns void language plpgsql as $$
begin
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        raise exception 'ticks must be made in a READ COMMITTED transaction' using errcode = 'invalid_transaction_state';
    end if;
end $$;
comment on function pgque._refuse_old_snapshot() is 'Raise when the transaction keeps one snapshot: its ticks could lie before committed ones';

create or replace function pgque._tick_snapshot() returns pg_snapshot language sql stable as $$
-- A snapshot does not list its own transaction as running. Listed here, so that
-- events sent by the transaction that ticks come with the next tick, always.
select case
    when c.own is null or c.own >= pg_snapshot_xmax(c.snapshot) then c.snapshot
    else format('%s:%s:%s',
        least(pg_snapshot_xmin(c.snapshot), c.own),
        pg_snapshot_xmax(c.snapshot),
        (select string_agg(x.id::text, ',' order by x.id)
         from (select pg_snapshot_xip(c.snapshot) union select c.own) x (id)))::pg_snapshot
end
from (select pg_current_snapshot(), pg_current_xact_id_if_assigned()) c (snapshot, own)
$$;
comment on function pgque._tick_snapshot is 'Snapshot of this statement, with the own transaction shown as running';

create or replace function pgque._due_queues(i_queue_ids integer[]) returns table (
    queue_id integer, queue_name text, next_tick_id bigint, event_seq bigint, old_snapshot pg_snapshot, new_events bigint
) language sql stable as $$
-- The only place that decides when to tick. NULL stands for all queues.
-- No transaction id is asked for: an idle pass must not use one up.
select q.queue_id, q.queue_name, coalesce(t1.tick_id, 0) + 1, d.event_seq, t1.tick_snapshot, d.new_events
from pgque.queue q
left join lateral (select * from pgque.tick t where t.tick_queue = q.queue_id order by t.tick_id desc limit 1) t1 on true
left join lateral (
    select t.tick_time, t.tick_event_seq from pgque.tick t
    where t.tick_queue = q.queue_id and t.tick_id < t1.tick_id order by t.tick_id desc limit 1
) t0 on true
cross join lateral (select coalesce(pg_sequence_last_value(to_regclass(q.queue_event_seq)), 0) as event_seq offset 0) s
cross join lateral (
    select s.event_seq, s.event_seq - t1.tick_event_seq as new_events, now() - t1.tick_time as lag offset 0
) d
where not q.queue_external_ticker and not q.queue_ticker_paused and (i_queue_ids is null or q.queue_id = any (i_queue_ids))
    and case
        when t1.tick_id is null or t0.tick_time is null then true
        when d.new_events > 0 then d.new_events >= q.queue_ticker_max_count or d.lag >= q.queue_ticker_max_lag
        -- Events of transactions that ran while the newest tick was taken wait for no idle period.
        when d.lag >= q.queue_ticker_max_lag and t1.tick_event_seq > t0.tick_event_seq
            and not pgque._is_read(pgque._event_table(q), t1.tick_snapshot) then true
        else d.lag >= q.queue_ticker_max_lag / 2
            and (d.lag >= 2 * (t1.tick_time - t0.tick_time) or d.lag >= q.queue_ticker_idle_period)
    end $$;
comment on function pgque._due_queues(integer[]) is 'Queues that are to be ticked now, in this statement''s snapshot';

create or replace function pgque._check_tick_state(i_snapshot pg_snapshot, i_new_events bigint, i_event_seq bigint)
returns void language plpgsql as $$
declare v_next_xid xid8 := pg_snapshot_xmax(pg_current_snapshot());
begin
    if pg_snapshot_xmin(i_snapshot) > v_next_xid then
        raise exception 'Invalid PgQ state: old xmin=%, old xmax=%, cur txid=%',
            pg_snapshot_xmin(i_snapshot), pg_snapshot_xmax(i_snapshot), v_next_xid
            using hint = 'After a restore into another cluster run pgque.rebase().';
    end if;
    if pg_snapshot_xmax(i_snapshot) > v_next_xid then
        raise warning 'Dubious PgQ state: old xmax=%, cur txid=%', pg_snapshot_xmax(i_snapshot), v_next_xid;
    end if;
    if i_new_events < 0 then
        raise warning 'Negative new_events?  old=% cur=%', i_event_seq - i_new_events, i_event_seq;
    end if;
end $$;
comment on function pgque._check_tick_state(pg_snapshot, bigint, bigint) is 'Raise when the newest tick lies in the future of this cluster';

create or replace function pgque._tick_queues(i_queue_ids integer[])
returns table (queue_id integer, tick_id bigint) language plpgsql as $$
-- Advisory lock (pgque.tick, queue): held by another ticker means that the queue
-- is being ticked, so it is skipped. The key share keeps drop_queue away.
declare v_locked integer[]; v_due record;
begin
    with candidate as materialized (
        select q.queue_id from pgque.queue q where q.queue_id = any (i_queue_ids)
        order by q.queue_name for key share skip locked
    )
    select array_agg(c.queue_id) into v_locked from candidate c
    where pg_try_advisory_xact_lock(hashtext('pgque.tick'), c.queue_id);

    for v_due in select * from pgque._due_queues(v_locked) d where v_locked is not null order by d.queue_name loop
        perform pgque._check_tick_state(v_due.old_snapshot, v_due.new_events, v_due.event_seq);
        insert into pgque.tick (tick_queue, tick_id, tick_snapshot, tick_event_seq)
        select v_due.queue_id, greatest(nextval(q.queue_tick_seq::regclass), v_due.next_tick_id),
            pgque._tick_snapshot(), v_due.event_seq
        from pgque.queue q where q.queue_id = v_due.queue_id
        returning tick.tick_queue, tick.tick_id into queue_id, tick_id;
        perform pg_notify('pgque_' || v_due.queue_name, tick_id::text);
        return next;
    end loop;
end $$;
comment on function pgque._tick_queues(integer[]) is 'Tick those of the given queues that are due; any failure ends the call';

create or replace function pgque.ticker()
returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_due integer[]; v_id integer; v_ticks bigint := 0;
begin
    begin
        v_due := array(select d.queue_id from pgque._due_queues(null) d order by d.queue_name);
        if v_due = '{}' then return 0; end if;
        perform pgque._refuse_old_snapshot();
        return (select count(*) from pgque._tick_queues(v_due));
    exception when others then
        if sqlstate = '25000' then raise; end if;
        -- One queue is broken, or being dropped: go on one by one, so that the others tick.
        v_due := coalesce(v_due, array(select q.queue_id from pgque.queue q
            where not q.queue_external_ticker and not q.queue_ticker_paused order by q.queue_name));
        foreach v_id in array v_due loop
            begin
                v_ticks := v_ticks + (select count(*) from pgque._tick_queues(array[v_id]));
            exception when others then
                raise warning 'pgque.ticker: queue % skipped: %',
                    (select q.queue_name from pgque.queue q where q.queue_id = v_id), sqlerrm;
            end;
        end loop;
    end;
    return v_ticks;
end $$;
comment on function pgque.ticker() is 'Tick every queue that is due; the number of ticks made. Any number may run; a failing queue is skipped with a warning';

create or replace function pgque.ticker(i_queue_name text)
returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_queue pgque.queue := pgque._queue(i_queue_name, 'no such queue');
begin
    if v_queue.queue_external_ticker then raise exception 'This queue has external tick source.'; end if;
    if v_queue.queue_ticker_paused then raise exception 'Ticker has been paused for this queue'; end if;
    perform pgque._refuse_old_snapshot();
    return (select t.tick_id from pgque._tick_queues(array[v_queue.queue_id]) t);
end $$;
comment on function pgque.ticker(text) is 'Tick one queue when it is due: the tick id, else NULL';
