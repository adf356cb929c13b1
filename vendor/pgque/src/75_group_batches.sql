-- Batches of a group: given to a member, or taken over from a silent one.

create or replace function pgque._check_group(
    i_main pgque.subscription, i_member pgque.subscription, i_queue text, i_consumer text, i_subconsumer text
) returns void language plpgsql as $$
begin
    if i_main.sub_id is null then raise exception 'cooperative main consumer not found: %/%', i_queue, i_consumer; end if;
    if i_main.sub_role <> 'coop_main' then
        raise exception 'consumer % on queue % is not a cooperative main consumer', i_consumer, i_queue;
    end if;
    if i_member.sub_id is null then
        raise exception 'cooperative subconsumer not found: %/%/%', i_queue, i_consumer, i_subconsumer;
    end if;
    if i_member.sub_role <> 'coop_member' or i_member.sub_id <> i_main.sub_id then
        raise exception 'consumer name % on queue % is already registered incompatibly',
            i_consumer || '.' || i_subconsumer, i_queue;
    end if;
    if i_main.sub_batch is not null then
        raise exception 'cooperative main consumer %/% has an unexpected active batch %',
            i_queue, i_consumer, i_main.sub_batch;
    end if;
    if i_main.sub_last_tick is null then
        raise exception 'PgQ corruption: cooperative main consumer % on queue % has no cursor', i_consumer, i_queue;
    end if;
    if not exists (select from pgque.tick where tick_queue = i_main.sub_queue and tick_id = i_main.sub_last_tick) then
        raise exception 'PgQ corruption: cooperative main consumer % on queue % does not see tick %',
            i_consumer, i_queue, i_main.sub_last_tick;
    end if;
end $$;
comment on function pgque._check_group is 'Raise unless main and member rows fit together';

create or replace function pgque._silent_members(i_member pgque.subscription, i_dead_interval interval)
returns setof pgque.subscription language sql as $$
select * from pgque.subscription
where sub_queue = i_member.sub_queue and sub_id = i_member.sub_id and sub_role = 'coop_member'
    and sub_consumer <> i_member.sub_consumer
    and sub_batch is not null and sub_active < clock_timestamp() - i_dead_interval
$$;
comment on function pgque._silent_members is 'Members of the same group whose batches may be taken over';

create or replace function pgque._silent_member(i_member pgque.subscription, i_dead_interval interval)
returns pgque.subscription language sql as $$
select s.* from pgque.subscription s
join pgque._silent_members(i_member, i_dead_interval) m
    on m.sub_queue = s.sub_queue and m.sub_consumer = s.sub_consumer and m.sub_batch = s.sub_batch
where s.sub_active < clock_timestamp() - i_dead_interval
order by s.sub_active limit 1 for no key update of s skip locked
$$;
comment on function pgque._silent_member is 'Member of the same group whose batch may be taken over, locked; the one silent for longest';

create or replace function pgque.next_batch_custom(
    i_queue text, i_consumer text, i_subconsumer text, i_min_lag interval, i_min_count integer,
    i_min_interval interval, i_dead_interval interval default null, out batch_id bigint, out prev_tick_id bigint,
    out next_tick_id bigint
) language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
-- 1. The open batch of this member. 2. The batch of the member silent for longest.
-- 3. The next free window. The row of the member is locked first of all, for two
-- processes may use one name, and one may be leaving: then the group, see
-- _remove_member(). An idle poll writes nothing but a sign of life now and then.
declare
    v_main pgque.subscription := pgque._find_subscription(i_queue, i_consumer);
    v_member pgque.subscription := pgque._find_subscription(i_queue, i_consumer || '.' || i_subconsumer);
    v_victim pgque.subscription;
begin
    if v_main.sub_id is null or v_main.sub_role = 'normal' or v_member.sub_id is null then
        perform pgque.register_subconsumer(i_queue, i_consumer, i_subconsumer);
        v_main := pgque._find_subscription(i_queue, i_consumer);
        v_member := pgque._find_subscription(i_queue, i_consumer || '.' || i_subconsumer);
    end if;
    perform pgque._check_group(v_main, v_member, i_queue, i_consumer, i_subconsumer);
    if v_member.sub_batch is null
        and not exists (select from pgque._silent_members(v_member, i_dead_interval))
        and pgque._next_tick(v_main.sub_queue, v_main.sub_last_tick, i_min_lag, i_min_count, i_min_interval) is null
    then
        perform pgque._sign_of_life(v_member, '10 seconds');
        return;
    end if;

    select * into v_member from pgque.subscription
    where sub_queue = v_member.sub_queue and sub_consumer = v_member.sub_consumer for no key update;
    perform pgque._check_group(v_main, v_member, i_queue, i_consumer, i_subconsumer);
    if v_member.sub_batch is not null then
        batch_id := v_member.sub_batch;
        prev_tick_id := v_member.sub_last_tick;
        next_tick_id := v_member.sub_next_tick;
        perform pgque._sign_of_life(v_member, '1 second');
        return;
    end if;

    v_victim := pgque._silent_member(v_member, i_dead_interval);
    if v_victim.sub_batch is not null then
        prev_tick_id := v_victim.sub_last_tick;
        next_tick_id := v_victim.sub_next_tick;
        perform pgque._clear_member_cursor(v_victim.sub_queue, v_victim.sub_consumer);
    else
        select w.from_tick, w.to_tick into prev_tick_id, next_tick_id
        from pgque._next_free_window(v_main, i_min_lag, i_min_count, i_min_interval) w;
        if next_tick_id is null then
            prev_tick_id := null;
            return;
        end if;
        perform pgque._move_group_cursor(v_main.sub_queue, v_main.sub_consumer, prev_tick_id, next_tick_id);
    end if;
    update pgque.subscription
    set sub_last_tick = prev_tick_id, sub_next_tick = next_tick_id, sub_batch = nextval('pgque.batch_id_seq'),
        sub_active = clock_timestamp()
    where sub_queue = v_member.sub_queue and sub_consumer = v_member.sub_consumer
    returning sub_batch into batch_id;
end $$;
comment on function pgque.next_batch_custom(text, text, text, interval, integer, interval, interval) is
'Experimental in PgQue 0.2. Give a member its open batch, the batch of a member silent for i_dead_interval (NULL: never), or the next window; joins the group when needed. Members do not wait for each other''s commit';

create or replace function pgque.receive_coop(
    i_queue text, i_consumer text, i_subconsumer text, i_max_return integer default 100,
    i_dead_interval interval default null
) returns setof pgque.message language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
-- Asks for one event more than allowed: an overflow is noticed cheaply.
declare v_batch pgque._window; v_batch_id bigint; v_count bigint;
begin
    if i_max_return < 1 then raise exception 'pgque.receive_coop: max_return must be >= 1, got %', i_max_return; end if;
    perform pgque._validate_coop_names(i_queue, i_consumer, i_subconsumer);
    loop
        v_batch_id := pgque.next_batch(i_queue, i_consumer, i_subconsumer, i_dead_interval);
        exit when v_batch_id is null;
        v_batch := pgque._readable_batch(v_batch_id);
        return query
        select e.ev_id, v_batch.batch_id, e.ev_type, e.ev_data, e.ev_retry, e.ev_time,
            e.ev_extra1, e.ev_extra2, e.ev_extra3, e.ev_extra4
        from pgque._read(v_batch, i_max_return::bigint + 1) e order by e.ev_id limit i_max_return::bigint + 1;
        get diagnostics v_count = row_count;
        perform pgque._refuse_overflow('receive_coop', v_count, i_max_return);
        exit when v_count > 0;
        perform pgque.ack(v_batch_id);
    end loop;
end $$;
comment on function pgque.receive_coop is
'Experimental in PgQue 0.2. Whole batch of a member, as receive(); a member silent for i_dead_interval loses its batch to the caller';
