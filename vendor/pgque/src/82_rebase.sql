-- After a restore into another cluster: transaction ids of ticks and events belong
-- to the old one, and may lie in the future of the new one. What every consumer has
-- not read yet goes to the retry queue, which carries none; then all starts afresh.

create or replace function pgque._keep_unread(i_sub pgque.subscription, i_newest_seq bigint)
returns bigint language plpgsql as $$
-- Old ids can still be compared with old snapshots. Events sent after the restore
-- carry ids of the new cluster and are known by their number alone.
declare
    v_queue pgque.queue := (select q from pgque.queue q where q.queue_id = i_sub.sub_queue);
    v_from pg_snapshot;
    v_to pg_snapshot;
    v_count bigint := 0;
    v_moved bigint;
begin
    select tick_snapshot into v_from from pgque.tick
    where tick_queue = i_sub.sub_queue and tick_id = i_sub.sub_last_tick;
    select tick_snapshot into v_to from pgque.tick
    where tick_queue = i_sub.sub_queue and tick_id = i_sub.sub_next_tick and i_sub.sub_role = 'coop_member';
    for i in 0..v_queue.queue_ntables - 1 loop
        execute format('insert into pgque.retry_queue (ev_retry_after, ev_queue, ev_id, ev_time, ev_owner, ev_retry,'
            ' ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4)'
            ' select now(), $1, ev_id, ev_time, $2, ev_retry, ev_type, ev_data,'
            ' ev_extra1, ev_extra2, ev_extra3, ev_extra4 from %s_%s'
            ' where (not pg_visible_in_snapshot(ev_txid, $3) or ev_id > $5)'
            ' and ($4 is null or pg_visible_in_snapshot(ev_txid, $4))'
            ' and (ev_owner is null or ev_owner = $2) on conflict do nothing', v_queue.queue_data_pfx, i)
        using i_sub.sub_queue, i_sub.sub_id, v_from, v_to, i_newest_seq;
        get diagnostics v_moved = row_count;
        v_count := v_count + v_moved;
    end loop;
    return v_count;
end
$$;
comment on function pgque._keep_unread(pgque.subscription, bigint) is
'Copy what a subscription has not read into the retry queue';

create or replace function pgque._rebase_queue(i_queue pgque.queue)
returns bigint language plpgsql as $$
declare
    v_count bigint;
    v_tick_id bigint;
    v_event_seq bigint := coalesce(pg_sequence_last_value(i_queue.queue_event_seq::regclass), 0);
begin
    for i in 0..i_queue.queue_ntables - 1 loop
        execute format('lock table %s_%s in access exclusive mode', i_queue.queue_data_pfx, i);
    end loop;
    select sum(pgque._keep_unread(s, n.seq)) into v_count
    from pgque.subscription s
    cross join (
        select tick_event_seq from pgque.tick where tick_queue = i_queue.queue_id order by tick_id desc limit 1
    ) n (seq)
    where s.sub_queue = i_queue.queue_id and s.sub_last_tick is not null;

    for i in 0..i_queue.queue_ntables - 1 loop
        execute format('truncate %s_%s', i_queue.queue_data_pfx, i);
    end loop;
    select coalesce(max(tick_id), 0) + 1 into v_tick_id from pgque.tick where tick_queue = i_queue.queue_id;
    delete from pgque.tick where tick_queue = i_queue.queue_id;
    insert into pgque.tick (tick_queue, tick_id, tick_event_seq) values (i_queue.queue_id, v_tick_id, v_event_seq);
    perform setval(i_queue.queue_tick_seq::regclass, v_tick_id);
    delete from pgque.coop_window where cw_queue = i_queue.queue_id;
    update pgque.subscription
    set sub_last_tick = case when sub_role <> 'coop_member' then v_tick_id end, sub_next_tick = null, sub_batch = null
    where sub_queue = i_queue.queue_id;
    update pgque.queue
    set queue_switch_step1 = pg_current_xact_id()::text::bigint,
        queue_switch_step2 = pg_current_xact_id()::text::bigint
    where queue_id = i_queue.queue_id;
    return coalesce(v_count, 0);
end
$$;
comment on function pgque._rebase_queue(pgque.queue) is 'Rebase one queue';

create or replace function pgque.rebase()
returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare
    v_queue pgque.queue;
    v_count bigint := 0;
begin
    perform pgque._refuse_old_snapshot();
    for v_queue in select * from pgque.queue order by queue_id for no key update loop
        v_count := v_count + pgque._rebase_queue(v_queue);
    end loop;
    return v_count;
end
$$;
comment on function pgque.rebase() is
'Repair all queues after a restore into another cluster: unread events, also those of open batches, come again as retries; their number';
