-- Members of a group: joining, leaving, signs of life.

create or replace function pgque._validate_coop_names(i_queue text, i_consumer text, i_subconsumer text)
returns void language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    if coalesce(i_queue, '') = '' then raise exception 'queue name must not be empty'; end if;
    if coalesce(i_consumer, '') = '' then raise exception 'consumer name must not be empty'; end if;
    if coalesce(i_subconsumer, '') = '' then raise exception 'subconsumer name must not be empty'; end if;
    if position('.' in i_consumer) > 0 then
        raise exception 'cooperative consumer name must not contain dot: %', i_consumer;
    end if;
    if position('.' in i_subconsumer) > 0 then
        raise exception 'cooperative subconsumer name must not contain dot: %', i_subconsumer;
    end if;
end $$;
comment on function pgque._validate_coop_names is 'Experimental in PgQue 0.2. Raise when a name cannot be used for a group';

create or replace function pgque._clear_member_cursor(p_queue_id integer, p_consumer_id integer)
returns void language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
begin
    update pgque.subscription
    set sub_last_tick = null, sub_next_tick = null, sub_batch = null, sub_active = clock_timestamp()
    where sub_queue = p_queue_id and sub_consumer = p_consumer_id;
end $$;
comment on function pgque._clear_member_cursor is 'Experimental in PgQue 0.2. Take the open batch away from a member';

create or replace function pgque._sign_of_life(i_member pgque.subscription, i_not_within interval default '0')
returns void language sql as $$
update pgque.subscription set sub_active = clock_timestamp()
where sub_queue = i_member.sub_queue and sub_consumer = i_member.sub_consumer
    and sub_active <= clock_timestamp() - i_not_within
$$;
comment on function pgque._sign_of_life is 'Note that a member lives, unless that was noted within an interval';

create or replace function pgque._ensure_main(i_queue text, i_consumer text, i_convert_normal boolean)
returns pgque.subscription language plpgsql as $$
declare v_main pgque.subscription; v_is_mine boolean := pgque.register_consumer_at(i_queue, i_consumer, null) = 1;
begin
    v_main := pgque._find_subscription(i_queue, i_consumer);
    select * into v_main from pgque.subscription
    where sub_queue = v_main.sub_queue and sub_consumer = v_main.sub_consumer for no key update;
    if v_main.sub_role <> 'normal' then return v_main; end if;
    if not (v_is_mine or i_convert_normal) then
        raise exception 'consumer % on queue % is already a normal consumer; explicit conversion is required',
            i_consumer, i_queue;
    end if;
    if v_main.sub_batch is not null then
        raise exception 'cannot convert active normal consumer % on queue % to cooperative main', i_consumer, i_queue;
    end if;
    update pgque.subscription set sub_role = 'coop_main'
    where sub_queue = v_main.sub_queue and sub_consumer = v_main.sub_consumer;
    return v_main;
end $$;
comment on function pgque._ensure_main is 'Main row of a group, made or converted when needed';

create or replace function pgque.register_subconsumer(
    i_queue text, i_consumer text, i_subconsumer text, i_convert_normal boolean default false
) returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare
    v_name text := i_consumer || '.' || i_subconsumer;
    v_main pgque.subscription;
    v_member pgque.subscription;
    v_is_new boolean;
begin
    perform pgque._validate_coop_names(i_queue, i_consumer, i_subconsumer);
    v_main := pgque._find_subscription(i_queue, i_consumer);
    if v_main.sub_id is not null then
        -- Keeps the group from ending while this session joins it.
        perform pg_advisory_xact_lock_shared(hashtext('pgque.group'), v_main.sub_id);
        v_main := pgque._find_subscription(i_queue, i_consumer);
    end if;
    v_is_new := v_main.sub_id is null;
    if v_is_new or v_main.sub_role = 'normal' then
        v_main := pgque._ensure_main(i_queue, i_consumer, coalesce(i_convert_normal, false));
    elsif v_main.sub_role <> 'coop_main' then
        raise exception 'consumer % on queue % is not a cooperative main consumer', i_consumer, i_queue;
    end if;

    insert into pgque.subscription (sub_id, sub_queue, sub_consumer, sub_role)
    values (v_main.sub_id, v_main.sub_queue, pgque._consumer_id(v_name), 'coop_member') on conflict do nothing;
    if found then return 1; end if;
    v_member := pgque._find_subscription(i_queue, v_name);
    if v_member.sub_role <> 'coop_member' or v_member.sub_id <> v_main.sub_id then
        raise exception 'consumer name % on queue % is already registered incompatibly', v_name, i_queue;
    end if;
    perform pgque._sign_of_life(v_member);
    return v_is_new::integer;
end $$;
comment on function pgque.register_subconsumer is
'Experimental in PgQue 0.2. Join a group, which is made at the newest tick when new: 1, or 0 when already in it. Any number may do so at once';

create or replace function pgque.touch_subconsumer(i_queue text, i_consumer text, i_subconsumer text)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_member pgque.subscription := pgque._find_subscription(i_queue, i_consumer || '.' || i_subconsumer);
begin
    update pgque.subscription set sub_active = clock_timestamp()
    where sub_queue = v_member.sub_queue and sub_consumer = v_member.sub_consumer and sub_role = 'coop_member';
    return found::integer;
end $$;
comment on function pgque.touch_subconsumer is 'Experimental in PgQue 0.2. Sign of life of a member at work: 1, or 0 when it is unknown';

create or replace function pgque._remove_member(i_member pgque.subscription) returns integer language plpgsql as $$
-- The group ends with its last member, unless somebody is just joining; its cursor
-- becomes that of a normal consumer. Windows that the cursor could not pass yet are
-- then read again. Advisory lock (pgque.leave, group): of two members that leave at
-- once the second sees that it is the last.
declare v_main pgque.subscription;
begin
    perform pg_advisory_xact_lock(hashtext('pgque.leave'), i_member.sub_id);
    delete from pgque.subscription where sub_queue = i_member.sub_queue and sub_consumer = i_member.sub_consumer;
    perform pgque._forget_consumers(array[i_member.sub_consumer]);
    for i in 1..2 loop
        if exists (
            select from pgque.subscription
            where sub_queue = i_member.sub_queue and sub_id = i_member.sub_id and sub_role = 'coop_member')
        then return 1; end if;
        perform pg_advisory_xact_lock(hashtext('pgque.group'), i_member.sub_id); -- and look again
    end loop;
    select * into v_main from pgque.subscription
    where sub_queue = i_member.sub_queue and sub_id = i_member.sub_id and sub_role = 'coop_main';
    perform pgque._move_group_cursor(v_main.sub_queue, v_main.sub_consumer, null, null);
    delete from pgque.coop_window where cw_queue = v_main.sub_queue and cw_consumer = v_main.sub_consumer;
    update pgque.subscription set sub_role = 'normal'
    where sub_queue = v_main.sub_queue and sub_consumer = v_main.sub_consumer;
    return 1;
end $$;
comment on function pgque._remove_member is 'Take a member without open batch out of its group';

create or replace function pgque.unregister_subconsumer(
    i_queue text, i_consumer text, i_subconsumer text, i_batch_handling integer default 0
) returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare
    v_member pgque.subscription := pgque._find_subscription(i_queue, i_consumer || '.' || i_subconsumer);
    v_batch pgque._window;
    v_event pgque.event_template;
begin
    perform pgque._validate_coop_names(i_queue, i_consumer, i_subconsumer);
    if i_batch_handling is null or i_batch_handling not in (0, 1) then
        raise exception 'unsupported batch_handling value: %', i_batch_handling;
    end if;
    select * into v_member from pgque.subscription
    where sub_queue = v_member.sub_queue and sub_consumer = v_member.sub_consumer and sub_role = 'coop_member' for update;
    if not found then return 0; end if;
    if v_member.sub_batch is not null then
        if i_batch_handling = 0 then
            raise exception 'cannot unregister active cooperative subconsumer %/%/% without batch_handling = 1',
                i_queue, i_consumer, i_subconsumer;
        end if;
        v_batch := pgque._readable_batch(v_member.sub_batch);
        for v_event in select * from pgque._read(v_batch, null) loop
            perform pgque._fail_event(v_batch, v_event, now() + interval '1 minute', 'subconsumer unregistered');
        end loop;
    end if;
    return pgque._remove_member(v_member);
end $$;
comment on function pgque.unregister_subconsumer is
'Experimental in PgQue 0.2. Leave a group: 1, or 0 when unknown. With batch_handling 1 the events of an open batch are retried in a minute';
