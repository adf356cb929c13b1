-- Cooperative consumers: a group shares one cursor (the coop_main row) and hands
-- whole windows to its members (coop_member rows). All rows of a group have one
-- sub_id, so that retries come back to the group.
--
-- This file finds the window to hand out next. It needs the main row for no longer
-- than the cursor takes to move: a window is claimed by an advisory lock on its
-- first tick, which tells other sessions of a claim that is not committed yet, and
-- by a row in coop_window when the cursor cannot be moved over it at once.

create or replace function pgque._move_group_cursor(
    i_queue_id integer, i_main_id integer, i_from_tick bigint, i_to_tick bigint
) returns void language plpgsql as $$
-- When another session holds the main row, the window stays in coop_window and a
-- later call moves the cursor over it.
declare v_start bigint; v_cursor bigint; v_next bigint;
begin
    select sub_last_tick into v_start from pgque.subscription
    where sub_queue = i_queue_id and sub_consumer = i_main_id for no key update skip locked;
    v_cursor := v_start;
    if v_start = i_from_tick then
        v_cursor := i_to_tick;
    elsif i_from_tick is not null then
        insert into pgque.coop_window values (i_queue_id, i_main_id, i_from_tick, i_to_tick);
    end if;
    loop
        delete from pgque.coop_window
        where cw_queue = i_queue_id and cw_consumer = i_main_id and cw_from_tick = v_cursor returning cw_to_tick into v_next;
        exit when not found;
        v_cursor := v_next;
    end loop;
    if v_cursor <> v_start then
        update pgque.subscription set sub_last_tick = v_cursor, sub_active = clock_timestamp()
        where sub_queue = i_queue_id and sub_consumer = i_main_id;
    end if;
end $$;
comment on function pgque._move_group_cursor is 'Mark a window as handed out, when one is given, and move the cursor of the group as far as it goes';

create or replace function pgque._claim_window(
    i_main pgque.subscription, i_min_lag interval, i_min_count bigint, i_min_interval interval,
    out from_tick bigint, out to_tick bigint
) language plpgsql as $$
-- Walks from the cursor over windows that are handed out (rows) or being handed
-- out (advisory locks). A window ends where the event count changes, so that all
-- sessions see the same borders, and never beyond the start of a known one.
declare v_handed_out_to bigint;
begin
    from_tick := i_main.sub_last_tick;
    loop
        select w.cw_to_tick into v_handed_out_to from pgque.coop_window w
        where w.cw_queue = i_main.sub_queue and w.cw_consumer = i_main.sub_consumer and w.cw_from_tick = from_tick;
        if found then
            from_tick := v_handed_out_to;
            continue;
        end if;
        to_tick := pgque._next_tick(i_main.sub_queue, from_tick, i_min_lag, i_min_count, i_min_interval);
        exit when to_tick is null;
        to_tick := least(to_tick, (
            select min(w.cw_from_tick) from pgque.coop_window w
            where w.cw_queue = i_main.sub_queue and w.cw_consumer = i_main.sub_consumer and w.cw_from_tick > from_tick));
        exit when pg_try_advisory_xact_lock(hashtextextended('pgque.window ' || i_main.sub_id, from_tick));
        from_tick := to_tick;
    end loop;
end $$;
comment on function pgque._claim_window is 'Next free window of a group, locked until commit; NULL end when there is none';

create or replace function pgque._next_free_window(
    i_main pgque.subscription, i_min_lag interval, i_min_count bigint, i_min_interval interval,
    out from_tick bigint, out to_tick bigint
) language plpgsql as $$
-- Windows of a wanted size have borders that other sessions cannot foresee: for
-- them the advisory lock (pgque.group, group) is taken alone, as for the end of the
-- group; who hands out other windows or joins shares it. A claim is checked again
-- once it is locked, for the session that held it before may have committed meanwhile.
begin
    if i_min_count is not null or i_min_interval is not null then
        perform pg_advisory_xact_lock(hashtext('pgque.group'), i_main.sub_id);
    else
        perform pg_advisory_xact_lock_shared(hashtext('pgque.group'), i_main.sub_id);
    end if;
    loop
        select * into i_main from pgque.subscription
        where sub_queue = i_main.sub_queue and sub_consumer = i_main.sub_consumer;
        select c.from_tick, c.to_tick into from_tick, to_tick
        from pgque._claim_window(i_main, i_min_lag, i_min_count, i_min_interval) c;
        exit when to_tick is null or exists (
                select from pgque.subscription
                where sub_queue = i_main.sub_queue and sub_consumer = i_main.sub_consumer and sub_last_tick <= from_tick)
            and not exists (
                select from pgque.coop_window
                where cw_queue = i_main.sub_queue and cw_consumer = i_main.sub_consumer
                    and cw_from_tick <= from_tick and cw_to_tick > from_tick);
    end loop;
end $$;
comment on function pgque._next_free_window is 'Claim the next free window of a group; NULL end when there is none';
