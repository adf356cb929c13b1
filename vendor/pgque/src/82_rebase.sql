-- After a restore into another cluster: transaction ids of ticks and events belong
-- to the old one, and may lie in the future of the new one. What every consumer has
-- not read yet goes to the retry queue, which carries none; then all starts afresh.

create or replace function pgque._keep_unread(i_sub pgque.subscription, i_table text, i_newest_seq bigint)
returns bigint language plpgsql as $$
-- Old ids can still be compared with old snapshots. Events sent after the restore
-- carry ids of the new cluster and are known by their number alone.
declare
    v_from pg_snapshot := (
        select tick_snapshot from pgque.tick where tick_queue = i_sub.sub_queue and tick_id = i_sub.sub_last_tick);
    v_to pg_snapshot := (
        select tick_snapshot from pgque.tick
        where tick_queue = i_sub.sub_queue and tick_id = i_sub.sub_next_tick and i_sub.sub_role = 'coop_member');
    v_count bigint;
begin
    execute format('insert into pgque.retry_queue'
        ' select now(), $1, ev_id, ev_time, null, $2, ev_retry, ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3, ev_extra4'
        ' from %s where (not pg_visible_in_snapshot(ev_txid, $3) or ev_id > $5)'
        ' and ($4 is null or pg_visible_in_snapshot(ev_txid, $4))'
        ' and (ev_owner is null or ev_owner = $2) on conflict do nothing', i_table)
    using i_sub.sub_queue, i_sub.sub_id, v_from, v_to, i_newest_seq;
    get diagnostics v_count = row_count;
    return v_count;
end $$;
comment on function pgque._keep_unread is 'Copy what a subscription has not read of an event table into the retry queue';

create or replace function pgque._rebase_queue(i_queue pgque.queue) returns bigint language plpgsql as $$
declare
    v_tables text := (select string_agg(t, ', ') from pgque._event_tables(i_queue) t);
    v_tick_id bigint;
    v_newest_seq bigint;
    v_count bigint;
begin
    execute format('lock table %s in access exclusive mode', v_tables);
    select tick_id, tick_event_seq into v_tick_id, v_newest_seq from pgque.tick
    where tick_queue = i_queue.queue_id order by tick_id desc limit 1;
    v_tick_id := coalesce(v_tick_id, 0) + 1;
    select sum(pgque._keep_unread(s, t, v_newest_seq)) into v_count
    from pgque.subscription s cross join pgque._event_tables(i_queue) t
    where s.sub_queue = i_queue.queue_id and s.sub_last_tick is not null;

    execute format('truncate %s', v_tables);
    delete from pgque.tick where tick_queue = i_queue.queue_id;
    insert into pgque.tick (tick_queue, tick_id, tick_event_seq)
    values (i_queue.queue_id, v_tick_id, coalesce(pg_sequence_last_value(i_queue.queue_event_seq::regclass), 0));
    perform setval(i_queue.queue_tick_seq::regclass, v_tick_id);
    delete from pgque.coop_window where cw_queue = i_queue.queue_id;
    update pgque.subscription
    set sub_last_tick = case when sub_role <> 'coop_member' then v_tick_id end, sub_next_tick = null, sub_batch = null
    where sub_queue = i_queue.queue_id;
    update pgque.queue
    set queue_switch_step1 = pg_current_xact_id()::text::bigint, queue_switch_step2 = pg_current_xact_id()::text::bigint
    where queue_id = i_queue.queue_id;
    return coalesce(v_count, 0);
end $$;
comment on function pgque._rebase_queue is 'Rebase one queue';

create or replace function pgque.rebase()
returns bigint language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_queue pgque.queue; v_count bigint := 0;
begin
    perform pgque._refuse_old_snapshot();
    for v_queue in select * from pgque.queue order by queue_id for no key update loop
        v_count := v_count + pgque._rebase_queue(v_queue);
    end loop;
    return v_count;
end $$;
comment on function pgque.rebase is
'Repair all queues after a restore into another cluster: unread events, also those of open batches, come again as retries; their number';
