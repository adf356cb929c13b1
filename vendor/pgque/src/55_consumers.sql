-- Consumers: subscribe, unsubscribe, receive.

create or replace function pgque._consumer_id(i_consumer text)
returns integer language plpgsql as $$
-- The row is locked only against deletion, so that consumers with one name on
-- many queues do not wait for each other.
declare
    v_id integer;
begin
    loop
        select co_id into v_id from pgque.consumer where co_name = i_consumer for key share;
        if found then
            return v_id;
        end if;
        insert into pgque.consumer (co_name) values (i_consumer) on conflict do nothing;
    end loop;
end
$$;
comment on function pgque._consumer_id(text) is 'Id of a consumer, made when new';

create or replace function pgque._forget_consumers(i_consumer_ids integer[])
returns void language plpgsql as $$
-- A row that somebody else holds is being subscribed again and stays.
declare
    v_ids integer[];
begin
    with idle as (
        select c.co_id from pgque.consumer c where c.co_id = any (i_consumer_ids) order by c.co_id
        for update skip locked
    )
    select array_agg(co_id) into v_ids from idle;
    delete from pgque.consumer c
    where c.co_id = any (v_ids)
        and not exists (select from pgque.subscription s where s.sub_consumer = c.co_id);
end
$$;
comment on function pgque._forget_consumers(integer[]) is
'Delete consumers that have no subscription left, and with them their dead letters';

create or replace function pgque.register_consumer_at(
    x_queue_name text, x_consumer_name text, x_tick_pos bigint
) returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
-- The lock on the tick keeps a rotation from deleting it before the cursor on it
-- is committed.
declare
    v_queue_id integer;
    v_consumer_id integer;
    v_tick_id bigint;
begin
    select queue_id into v_queue_id from pgque.queue where queue_name = x_queue_name for key share;
    if not found then
        raise exception 'Event queue not created yet';
    end if;
    v_consumer_id := pgque._consumer_id(x_consumer_name);
    if x_tick_pos is not null then
        select tick_id into v_tick_id from pgque.tick
        where tick_queue = v_queue_id and tick_id = x_tick_pos for key share;
        if not found then
            raise exception 'cannot reposition, tick not found: %', x_tick_pos;
        end if;
    else
        select tick_id into v_tick_id from pgque.tick
        where tick_queue = v_queue_id order by tick_id desc limit 1 for key share;
        if not found then
            raise exception 'No ticks for this queue.  Please run ticker on database.';
        end if;
    end if;

    insert into pgque.subscription (sub_queue, sub_consumer, sub_last_tick)
    values (v_queue_id, v_consumer_id, v_tick_id)
    on conflict do nothing;
    if found then
        return 1;
    end if;
    if x_tick_pos is not null then
        update pgque.subscription
        set sub_last_tick = v_tick_id, sub_batch = null, sub_next_tick = null, sub_active = clock_timestamp()
        where sub_queue = v_queue_id and sub_consumer = v_consumer_id and sub_role = 'normal';
        if not found then
            raise exception 'cannot reposition cooperative consumer % on queue %', x_consumer_name, x_queue_name;
        end if;
    end if;
    return 0;
end
$$;
comment on function pgque.register_consumer_at(text, text, bigint) is
'Subscribe at a tick, or move an existing cursor there and drop its open batch: 1 when new';

create or replace function pgque.register_consumer(x_queue_name text, x_consumer_id text)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin return pgque.register_consumer_at(x_queue_name, x_consumer_id, null); end $$;
comment on function pgque.register_consumer(text, text) is 'Older name of subscribe()';

create or replace function pgque.subscribe(queue text, consumer text)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin return pgque.register_consumer_at(queue, consumer, null); end $$;
comment on function pgque.subscribe(text, text) is
'Subscribe at the newest tick: 1 when new, 0 when already there. Any number may do so at once';

create or replace function pgque.unregister_consumer(x_queue_name text, x_consumer_name text)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare
    v_sub pgque.subscription := pgque._find_subscription(x_queue_name, x_consumer_name);
begin
    select * into v_sub
    from pgque.subscription
    where sub_queue = v_sub.sub_queue and sub_consumer = v_sub.sub_consumer
    for update;
    if not found then
        return 0;
    end if;
    if v_sub.sub_role = 'coop_member' and v_sub.sub_batch is not null then
        raise exception 'cannot unregister active cooperative subconsumer without forced batch handling';
    end if;
    if v_sub.sub_role = 'coop_member' then
        return pgque._remove_member(v_sub);
    end if;
    if v_sub.sub_role = 'coop_main' and exists (
        select from pgque.subscription
        where sub_queue = v_sub.sub_queue and sub_id = v_sub.sub_id and sub_role = 'coop_member'
    ) then
        if exists (
            select from pgque.subscription
            where sub_queue = v_sub.sub_queue and sub_id = v_sub.sub_id
                and sub_role = 'coop_member' and sub_batch is not null
        ) then
            raise exception 'cannot unregister cooperative consumer with active subconsumer batches';
        end if;
        raise exception 'cannot unregister cooperative main consumer with registered subconsumers';
    end if;

    delete from pgque.retry_queue where ev_queue = v_sub.sub_queue and ev_owner = v_sub.sub_id;
    delete from pgque.subscription where sub_queue = v_sub.sub_queue and sub_consumer = v_sub.sub_consumer;
    perform pgque._forget_consumers(array[v_sub.sub_consumer]);
    return 1;
end
$$;
comment on function pgque.unregister_consumer(text, text) is
'Unsubscribe: pending retries go, and with the last subscription also the dead letters. 0 when not subscribed';

create or replace function pgque.unsubscribe(queue text, consumer text)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin return pgque.unregister_consumer(queue, consumer); end $$;
comment on function pgque.unsubscribe(text, text) is 'Unsubscribe, as unregister_consumer()';

create or replace function pgque._messages_sql(i_queue_id integer)
returns text language sql as $$
-- $1 is the window, $2 one more than the limit of rows: an overflow is noticed cheaply.
select format('select ev_id, ($1).batch_id, ev_type, ev_data, ev_retry, ev_time,'
    ' ev_extra1, ev_extra2, ev_extra3, ev_extra4 from pgque._read_%s($1, $2) order by ev_id limit $2', i_queue_id)
$$;
comment on function pgque._messages_sql(integer) is 'Query for the messages of a window in the order of their ids';

create or replace function pgque._refuse_overflow(i_function text, i_count bigint, i_max_return integer)
returns void language plpgsql as $$
begin
    if i_count > i_max_return then
        raise exception 'pgque.%: batch exceeds max_return of %', i_function, i_max_return
            using errcode = 'program_limit_exceeded',
                hint = 'Retry with a larger resource-safe max_return to receive the complete batch. '
                    'Do not acknowledge after this error.';
    end if;
end
$$;
comment on function pgque._refuse_overflow(text, bigint, integer) is 'Raise when a batch is larger than the caller allows';

create or replace function pgque.receive(i_queue text, i_consumer text, i_max_return integer default 100)
returns setof pgque.message language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare
    v_window pgque._window;
    v_count bigint;
begin
    if i_max_return < 1 then
        raise exception 'pgque.receive: max_return must be >= 1, got %', i_max_return;
    end if;
    loop
        v_window := pgque._open_batch(i_queue, i_consumer, null, null, null);
        exit when v_window.batch_id is null;
        return query execute pgque._messages_sql(v_window.queue_id) using v_window, i_max_return::bigint + 1;
        get diagnostics v_count = row_count;
        perform pgque._refuse_overflow('receive', v_count, i_max_return);
        exit when v_count > 0;
        perform pgque.finish_batch(v_window.batch_id);
    end loop;
end
$$;
comment on function pgque.receive(text, text, integer) is
'Whole next batch, or the open one again; empty windows are finished on the way. A batch above max_return raises 54000 and changes nothing; NULL is no limit';
