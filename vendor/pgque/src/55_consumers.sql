-- Consumers: subscribe, unsubscribe.

create or replace function pgque._consumer_id(i_consumer text) returns integer language plpgsql as $$
-- The row is locked only against deletion, so that consumers with one name on
-- many queues do not wait for each other.
declare v_id integer;
begin
    loop
        select co_id into v_id from pgque.consumer where co_name = i_consumer for key share;
        if found then return v_id; end if;
        insert into pgque.consumer (co_name) values (i_consumer) on conflict do nothing;
    end loop;
end $$;
comment on function pgque._consumer_id is 'Id of a consumer, made when new';

create or replace function pgque._forget_consumers(i_consumer_ids integer[]) returns void language plpgsql as $$
-- A row that somebody else holds is being subscribed again and stays.
declare v_ids integer[];
begin
    with idle as (
        select c.co_id from pgque.consumer c where c.co_id = any (i_consumer_ids) order by c.co_id for update skip locked
    )
    select array_agg(co_id) into v_ids from idle;
    delete from pgque.consumer c
    where c.co_id = any (v_ids) and not exists (select from pgque.subscription s where s.sub_consumer = c.co_id);
end $$;
comment on function pgque._forget_consumers is 'Delete consumers that have no subscription left, and with them their dead letters';

create or replace function pgque.register_consumer_at(x_queue_name text, x_consumer_name text, x_tick_pos bigint)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
-- The lock on the tick keeps a rotation from deleting it before the cursor on it
-- is committed.
declare v_queue_id integer; v_consumer_id integer; v_tick_id bigint;
begin
    select queue_id into v_queue_id from pgque.queue where queue_name = x_queue_name for key share;
    if not found then raise exception 'Event queue not created yet'; end if;
    v_consumer_id := pgque._consumer_id(x_consumer_name);
    select tick_id into v_tick_id from pgque.tick
    where tick_queue = v_queue_id and tick_id = coalesce(x_tick_pos, tick_id) order by tick_id desc limit 1 for key share;
    if not found and x_tick_pos is not null then raise exception 'cannot reposition, tick not found: %', x_tick_pos; end if;
    if not found then raise exception 'No ticks for this queue.  Please run ticker on database.'; end if;

    insert into pgque.subscription (sub_queue, sub_consumer, sub_last_tick)
    values (v_queue_id, v_consumer_id, v_tick_id) on conflict do nothing;
    if found then return 1; end if;
    if x_tick_pos is not null then
        update pgque.subscription
        set sub_last_tick = v_tick_id, sub_batch = null, sub_next_tick = null, sub_active = clock_timestamp()
        where sub_queue = v_queue_id and sub_consumer = v_consumer_id and sub_role = 'normal';
        if not found then
            raise exception 'cannot reposition cooperative consumer % on queue %', x_consumer_name, x_queue_name;
        end if;
    end if;
    return 0;
end $$;
comment on function pgque.register_consumer_at is 'Subscribe at a tick, or move an existing cursor there and drop its open batch: 1 when new';

create or replace function pgque.unregister_consumer(x_queue_name text, x_consumer_name text)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_sub pgque.subscription := pgque._find_subscription(x_queue_name, x_consumer_name); v_is_busy boolean;
begin
    select * into v_sub from pgque.subscription
    where sub_queue = v_sub.sub_queue and sub_consumer = v_sub.sub_consumer for update;
    if not found then return 0; end if;
    if v_sub.sub_role = 'coop_member' and v_sub.sub_batch is not null then
        raise exception 'cannot unregister active cooperative subconsumer without forced batch handling';
    end if;
    if v_sub.sub_role = 'coop_member' then return pgque._remove_member(v_sub); end if;
    select bool_or(sub_batch is not null) into v_is_busy from pgque.subscription
    where sub_queue = v_sub.sub_queue and sub_id = v_sub.sub_id and sub_role = 'coop_member';
    if v_is_busy then raise exception 'cannot unregister cooperative consumer with active subconsumer batches'; end if;
    if v_is_busy is not null then
        raise exception 'cannot unregister cooperative main consumer with registered subconsumers';
    end if;

    delete from pgque.retry_queue where ev_queue = v_sub.sub_queue and ev_owner = v_sub.sub_id;
    delete from pgque.subscription where sub_queue = v_sub.sub_queue and sub_consumer = v_sub.sub_consumer;
    perform pgque._forget_consumers(array[v_sub.sub_consumer]);
    return 1;
end $$;
comment on function pgque.unregister_consumer is 'Unsubscribe: pending retries go, and with the last subscription also the dead letters. 0 when not subscribed';
