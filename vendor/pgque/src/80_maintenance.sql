-- Maintenance: event tables take turns, and the one whose turn comes is truncated.
-- Rotation has two steps, to be run in transactions of their own.

create or replace function pgque._truncate_if_read(i_table text, i_snapshot pg_snapshot)
returns boolean language plpgsql set lock_timeout = '100ms' as $$
-- The exclusive lock keeps every writer out, also one with an old snapshot, so
-- the rows seen under it are all there are. Only then readers are told to pass
-- the table by (see _for_each_table). False, and all locks given back, when
-- somebody uses the table or it holds a row that is still to be read.
begin
    if pg_relation_size(i_table::regclass) = 0 then return true; end if;
    execute format('lock table %s in access exclusive mode', i_table);
    if i_snapshot is not null and not pgque._is_read(i_table, i_snapshot) or not pg_try_advisory_xact_lock(hashtextextended(i_table, 0)) then
        raise lock_not_available;
    end if;
    execute format('truncate %s', i_table);
    return true;
exception when lock_not_available then
    return false;
end $$;
comment on function pgque._truncate_if_read is 'Empty an event table that all consumers have read; NULL stands for no consumer';

create or replace function pgque._delete_old_ticks(i_queue_id integer, i_lowest_tick bigint, i_before_xid xid8)
returns void language sql as $$
-- A tick that is just being subscribed to is locked, and passed over.
delete from pgque.tick t using (
    select o.tick_id from pgque.tick o where o.tick_queue = i_queue_id
        and o.tick_id < coalesce(i_lowest_tick, (select max(n.tick_id) from pgque.tick n where n.tick_queue = i_queue_id))
        and pg_snapshot_xmin(o.tick_snapshot) < i_before_xid
    for update skip locked
) old
where t.tick_queue = i_queue_id and t.tick_id = old.tick_id
$$;
comment on function pgque._delete_old_ticks is 'Delete ticks that every consumer has passed; the newest stays';

create or replace function pgque.maint_rotate_tables_step1(i_queue_name text)
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_queue pgque.queue; v_lowest pgque.tick; v_lowest_id bigint; v_next integer; v_xid bigint;
begin
    select * into v_queue from pgque.queue where queue_name = i_queue_name and queue_switch_step2 is not null
        and queue_switch_time + queue_rotation_period < now()
    for no key update skip locked;
    if not found then return 0; end if;
    v_xid := pg_current_xact_id()::text::bigint;
    if v_xid < v_queue.queue_switch_step1 then
        raise exception 'queue % maint failure: step1=%, current=%', i_queue_name, v_queue.queue_switch_step1, v_xid;
    end if;
    select min(sub_last_tick) into v_lowest_id from pgque.subscription where sub_queue = v_queue.queue_id;
    select * into v_lowest from pgque.tick where tick_queue = v_queue.queue_id and tick_id = v_lowest_id;
    if not found and v_lowest_id is not null then
        raise exception 'queue % maint failure: tick % not found', i_queue_name, v_lowest_id;
    end if;

    v_next := (v_queue.queue_cur_table + 1) % v_queue.queue_ntables;
    if not pgque._truncate_if_read(pgque._event_table(v_queue, v_next), v_lowest.tick_snapshot) then return 0; end if;
    update pgque.queue
    set queue_cur_table = v_next, queue_switch_time = now(), queue_switch_step1 = v_xid, queue_switch_step2 = null
    where queue_id = v_queue.queue_id;
    perform pgque._delete_old_ticks(v_queue.queue_id, v_lowest_id, v_queue.queue_switch_step2::text::xid8);
    return 0;
end $$;
comment on function pgque.maint_rotate_tables_step1 is
'Rotate a queue when its period is over and the next table is read by all: truncate that table and let producers write to it';

create or replace function pgque.maint_rotate_tables_step2() returns integer language plpgsql as $$
begin
    update pgque.queue set queue_switch_step2 = pg_current_xact_id()::text::bigint where queue_switch_step2 is null;
    return 0;
end $$;
comment on function pgque.maint_rotate_tables_step2 is 'Finish the rotations begun by earlier transactions; without it no second rotation starts';

create or replace function pgque.maint_tables_to_vacuum() returns setof text language sql as $$
select unnest(array['pgque.subscription', 'pgque.consumer', 'pgque.queue', 'pgque.tick', 'pgque.retry_queue'])
where not current_setting('autovacuum')::boolean
$$;
comment on function pgque.maint_tables_to_vacuum is 'Tables to vacuum by hand; none when autovacuum is on';

create or replace function pgque.maint_operations(out func_name text, out func_arg text)
returns setof record language plpgsql as $$
begin
    return query
    select 'pgque.maint_rotate_tables_step1', q.queue_name from pgque.queue q
    where q.queue_switch_step2 is not null and q.queue_switch_time + q.queue_rotation_period < now() order by 2;
    return query
    select 'pgque.maint_rotate_tables_step2', null::text
    where exists (select from pgque.queue where queue_switch_step2 is null);
    return query
    select f.name, q.queue_name from pgque.queue q cross join unnest(q.queue_extra_maint) f (name) order by 2, 1;
    return query select 'vacuum', t from pgque.maint_tables_to_vacuum() t;
end $$;
comment on function pgque.maint_operations is 'Maintenance that is to be done now: function and argument';

create or replace function pgque._run_extra_maint(i_function text, i_queue_name text)
returns void language plpgsql as $$
-- A hook runs with the rights of the owner of the engine, so it must be his.
declare
    v_function oid := to_regprocedure(i_function || '(text)');
    v_owner oid := (select p.proowner from pg_proc p where p.oid = v_function);
    v_engine_owner oid := (select p.proowner from pg_proc p where p.oid = 'pgque.maint()'::regprocedure);
begin
    if v_function is null then
        raise warning 'pgque.maint: skipping % — invalid regprocedure: %', i_function, i_function || '(text)';
    elsif v_owner <> v_engine_owner then
        raise warning 'pgque.maint: skipping % — owner % is not maint() owner %',
            i_function, v_owner::regrole, v_engine_owner::regrole;
    else
        execute format('select %s($1)', v_function::regproc) using i_queue_name;
    end if;
end $$;
comment on function pgque._run_extra_maint is 'Run a maintenance function that a queue names';

create or replace function pgque.maint()
returns integer language plpgsql security definer set search_path = pgque, pg_catalog, pg_temp as $$
declare v_operation record; v_count integer := 0;
begin
    for v_operation in select * from pgque.maint_operations() loop
        continue when v_operation.func_name in ('vacuum', 'pgque.maint_rotate_tables_step2');
        begin
            if v_operation.func_name = 'pgque.maint_rotate_tables_step1' then
                perform pgque.maint_rotate_tables_step1(v_operation.func_arg);
            else
                perform pgque._run_extra_maint(v_operation.func_name, v_operation.func_arg);
            end if;
            v_count := v_count + 1;
        exception when others then
            raise warning 'pgque.maint: % of queue % failed: %', v_operation.func_name, v_operation.func_arg, sqlerrm;
        end;
    end loop;
    return v_count;
end $$;
comment on function pgque.maint is
'Rotate the queues that are due and run their extra maintenance; the number of operations done. Retries and step 2 are calls of their own';
