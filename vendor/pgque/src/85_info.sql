-- What operators look at: queues, consumers, batches, the installation.

create or replace function pgque.get_queue_info(
    i_queue_name text, out queue_name text, out queue_ntables integer, out queue_cur_table integer,
    out queue_rotation_period interval, out queue_switch_time timestamptz, out queue_external_ticker boolean,
    out queue_ticker_paused boolean, out queue_ticker_max_count integer, out queue_ticker_max_lag interval,
    out queue_ticker_idle_period interval, out ticker_lag interval, out ev_per_sec double precision,
    out ev_new bigint, out last_tick_id bigint
) returns setof record language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    return query
    select q.queue_name, q.queue_ntables, q.queue_cur_table, q.queue_rotation_period, q.queue_switch_time,
        q.queue_external_ticker, q.queue_ticker_paused, q.queue_ticker_max_count, q.queue_ticker_max_lag,
        q.queue_ticker_idle_period, now() - t.new_time,
        case when t.new_time > t.old_time
            then (t.new_seq - t.old_seq) / extract(epoch from t.new_time - t.old_time)::double precision end,
        coalesce(pg_sequence_last_value(q.queue_event_seq::regclass), 0) - t.new_seq, t.new_id
    from pgque.queue q
    cross join lateral (
        select max(r.tick_id), max(r.tick_time), min(r.tick_time), max(r.tick_event_seq), min(r.tick_event_seq)
        from (select * from pgque.tick where tick_queue = q.queue_id order by tick_id desc limit 20) r
    ) t (new_id, new_time, old_time, new_seq, old_seq)
    where i_queue_name is null or q.queue_name = i_queue_name order by q.queue_name;
end $$;
comment on function pgque.get_queue_info(text) is 'Settings and state of a queue: time since the newest tick, rate over the last ticks, events not ticked yet';

create or replace function pgque.get_consumer_info(
    i_queue_name text, i_consumer_name text, out queue_name text, out consumer_name text, out lag interval,
    out last_seen interval, out last_tick bigint, out current_batch bigint, out next_tick bigint,
    out pending_events bigint
) returns setof record language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    return query
    select q.queue_name, c.co_name, now() - t.tick_time, now() - s.sub_active, s.sub_last_tick, s.sub_batch,
        s.sub_next_tick, (select n.tick_event_seq from pgque.tick n where n.tick_queue = q.queue_id order by n.tick_id desc limit 1)
        - t.tick_event_seq
    from pgque.subscription s join pgque.queue q on q.queue_id = s.sub_queue
    join pgque.consumer c on c.co_id = s.sub_consumer
    left join pgque.tick t on t.tick_queue = s.sub_queue and t.tick_id = s.sub_last_tick
    where (i_queue_name is null or q.queue_name = i_queue_name)
        and (i_consumer_name is null or c.co_name = i_consumer_name) order by q.queue_name, c.co_name;
end $$;
comment on function pgque.get_consumer_info(text, text) is 'State of consumers: age and size of what lies behind their cursor, last sign of life, open batch';

create or replace function pgque.get_batch_info(
    x_batch_id bigint, out queue_name text, out consumer_name text, out batch_start timestamptz,
    out batch_end timestamptz, out prev_tick_id bigint, out tick_id bigint, out lag interval, out seq_start bigint,
    out seq_end bigint
) language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    select q.queue_name, c.co_name, w.from_time, w.to_time, w.from_tick, w.to_tick, now() - w.to_time, w.from_seq, w.to_seq
    into queue_name, consumer_name, batch_start, batch_end, prev_tick_id, tick_id, lag, seq_start, seq_end
    from pgque._window w join pgque.queue q on q.queue_id = w.queue_id join pgque.consumer c on c.co_id = w.consumer_id
    where w.batch_id = x_batch_id;
end $$;
comment on function pgque.get_batch_info is 'Owner and borders of an open batch; one row of NULLs when unknown';

create or replace function pgque.status()
returns table (component text, status text, detail text) language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_config pgque.config := (select c from pgque.config c);
begin
    return query
    values
        ('postgresql', 'info', pg_catalog.version()),
        ('pgque', 'info', pgque.version()),
        ('scheduler', coalesce(v_config.scheduler, 'manual'), format(
            'ticker_job_id=%s, maint_job_id=%s, tick_period_ms=%s (%s ticks/sec)',
            coalesce(v_config.ticker_job_id::text, 'NULL'), coalesce(v_config.maint_job_id::text, 'NULL'),
            v_config.tick_period_ms, round(1000.0 / v_config.tick_period_ms, 2))),
        ('ticker', case when v_config.ticker_job_id is null then 'stopped' else 'scheduled' end, null),
        ('maintenance', case when v_config.maint_job_id is null then 'stopped' else 'scheduled' end, null),
        ('pg_cron', 'unavailable', 'call pgque.ticker() / pgque.maint() manually'),
        ('pg_timetable', 'unavailable', 'call pgque.ticker() / pgque.maint() manually'),
        ('queues', 'info', format('%s queues configured', (select count(*) from pgque.queue))),
        ('consumers', 'info', format('%s active subscriptions', (select count(*) from pgque.subscription)));
end $$;
comment on function pgque.status is 'Overview of the installation, one row per component';

create or replace function pgque.uninstall()
returns void language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    drop schema pgque cascade;
    raise notice 'pgque: schema dropped; the roles pgque_reader, pgque_writer and pgque_admin stay';
end $$;
comment on function pgque.uninstall is 'Remove the engine with all queues and events; only its owner may do so';
