-- Ticks on demand: forced, from an outside source, or in a loop.

create or replace function pgque._queue_to_tick(i_queue_name text, i_is_external boolean)
returns pgque.queue language plpgsql as $$
declare v_queue pgque.queue := pgque._queue(i_queue_name);
begin
    if v_queue.queue_ticker_paused then
        raise exception 'queue % is paused (queue_ticker_paused = true)', i_queue_name;
    end if;
    if i_is_external and not v_queue.queue_external_ticker then
        raise exception 'queue % is not configured for external ticker (queue_external_ticker = false); use pgque.ticker(queue) instead',
            i_queue_name;
    end if;
    if v_queue.queue_external_ticker and not i_is_external then
        raise exception 'queue % is configured for external ticker; force_tick is meaningless — push ticks via pgque.ticker(queue, tick_id, ts, event_seq)',
            i_queue_name;
    end if;
    return v_queue;
end $$;
comment on function pgque._queue_to_tick is 'Queue whose ticks come from outside, or from ticker(); raises when it is not so';

create or replace function pgque.ticker(
    i_queue_name text, i_tick_id bigint, i_orig_timestamp timestamptz, i_event_seq bigint
) returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_queue pgque.queue := pgque._queue_to_tick(i_queue_name, true); v_last pgque.tick;
begin
    perform pgque._refuse_old_snapshot();
    -- The same lock as in _tick_queues(), here waited for.
    perform pg_advisory_xact_lock(hashtext('pgque.tick'), v_queue.queue_id);
    select * into v_last from pgque.tick where tick_queue = v_queue.queue_id order by tick_id desc limit 1;
    if i_tick_id <= v_last.tick_id then
        raise exception 'external ticker tick_id must be strictly greater than current max (% <= %)',
            i_tick_id, v_last.tick_id;
    end if;
    if i_event_seq < v_last.tick_event_seq then
        raise exception 'external ticker event_seq must be >= previous tick (% < %)', i_event_seq, v_last.tick_event_seq;
    end if;
    insert into pgque.tick (tick_queue, tick_id, tick_time, tick_snapshot, tick_event_seq)
    values (v_queue.queue_id, i_tick_id, i_orig_timestamp, pgque._tick_snapshot(), i_event_seq);
    perform setval(v_queue.queue_tick_seq::regclass, i_tick_id);
    perform pg_notify('pgque_' || i_queue_name, i_tick_id::text);
    return i_tick_id;
end $$;
comment on function pgque.ticker(text, bigint, timestamptz, bigint) is 'Record a tick that an outside source gives, with the snapshot of now';

create or replace function pgque.force_next_tick(i_queue_name text)
returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_queue pgque.queue := pgque._queue_to_tick(i_queue_name, false);
begin
    perform setval(v_queue.queue_event_seq::regclass, coalesce(pg_sequence_last_value(v_queue.queue_event_seq::regclass), 0)
        + v_queue.queue_ticker_max_count::bigint * 2 + 1000);
    return (select max(tick_id) from pgque.tick where tick_queue = v_queue.queue_id);
end $$;
comment on function pgque.force_next_tick is 'Make the next ticker() call tick this queue; returns the newest tick there is';

create or replace function pgque.set_tick_period_ms(p_period_ms integer)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    if p_period_ms is null or p_period_ms not between 1 and 1000 or 1000 % p_period_ms <> 0 then
        raise exception 'tick_period_ms must be an exact divisor of 1000 between 1 and 1000 (got %)',
            coalesce(p_period_ms::text, 'NULL');
    end if;
    update pgque.config set tick_period_ms = p_period_ms;
    return p_period_ms;
end $$;
comment on function pgque.set_tick_period_ms(integer) is 'Set the pause of ticker_loop()';

create or replace procedure pgque.ticker_loop() language plpgsql as $$
declare
    v_period integer := (select tick_period_ms from pgque.config);
    v_start timestamptz := clock_timestamp();
    v_wait double precision;
begin
    for i in 1..1000 / v_period loop
        perform pgque.ticker();
        commit;
        v_wait := extract(epoch from v_start - clock_timestamp()) + i * v_period / 1000.0;
        exit when v_wait < -1;
        perform pg_sleep(greatest(v_wait, 0));
    end loop;
end $$;
comment on procedure pgque.ticker_loop is 'Run ticker() for about one second, committing after each pass; CALL it outside a transaction';
