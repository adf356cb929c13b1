-- Tables: queues and their consumers, ticks, and the events that wait outside
-- the event tables (retries, dead letters). Event tables are made per queue.

create table if not exists pgque.config (
    singleton boolean primary key default true check (singleton),
    ticker_job_id bigint,
    maint_job_id bigint,
    scheduler text constraint config_scheduler_check check (scheduler in ('pg_cron', 'pg_timetable')),
    tick_period_ms integer not null default 100
        constraint config_tick_period_ms_check
        check (tick_period_ms between 1 and 1000 and 1000 % tick_period_ms = 0),
    installed_at timestamptz default clock_timestamp()
);
comment on table pgque.config is 'Settings of this installation: exactly one row';
comment on column pgque.config.singleton is 'Always true: allows one row only';
comment on column pgque.config.ticker_job_id is 'Job of an outside scheduler that runs the ticker';
comment on column pgque.config.maint_job_id is 'Job of an outside scheduler that runs maintenance';
comment on column pgque.config.scheduler is 'Outside scheduler in use; NULL when the ticker is a process of its own';
comment on column pgque.config.tick_period_ms is 'Pause between two passes of ticker_loop()';
comment on column pgque.config.installed_at is 'Time of the first installation';
insert into pgque.config (singleton) values (true) on conflict do nothing;

create table if not exists pgque.consumer (
    co_id serial primary key,
    co_name text not null constraint consumer_name_uq unique
);
comment on table pgque.consumer is 'Names of consumers; members of a group are called consumer.subconsumer';
comment on column pgque.consumer.co_id is 'Consumer id';
comment on column pgque.consumer.co_name is 'Consumer name';

create table if not exists pgque.queue (
    queue_id serial primary key,
    queue_name text not null constraint queue_name_uq unique,
    queue_ntables integer not null default 3,
    queue_cur_table integer not null default 0,
    queue_rotation_period interval not null default '2 hours',
    queue_switch_step1 bigint not null default pg_current_xact_id()::text::bigint,
    queue_switch_step2 bigint default pg_current_xact_id()::text::bigint,
    queue_switch_time timestamptz not null default now(),
    queue_external_ticker boolean not null default false,
    queue_disable_insert boolean not null default false,
    queue_ticker_paused boolean not null default false,
    queue_ticker_max_count integer not null default 500,
    queue_ticker_max_lag interval not null default '3 seconds',
    queue_ticker_idle_period interval not null default '1 minute',
    queue_data_pfx text not null,
    queue_event_seq text not null,
    queue_tick_seq text not null,
    queue_extra_maint text[],
    queue_max_retries integer
);
comment on table pgque.queue is 'Queues and their settings';
comment on column pgque.queue.queue_id is 'Queue id, part of the names of its tables';
comment on column pgque.queue.queue_name is 'Queue name; the NOTIFY channel is pgque_<name>';
comment on column pgque.queue.queue_ntables is 'Number of event tables in rotation';
comment on column pgque.queue.queue_cur_table is 'Event table that producers write to';
comment on column pgque.queue.queue_rotation_period is 'Least time between two rotations';
comment on column pgque.queue.queue_switch_step1 is 'Transaction of the last rotation, first step';
comment on column pgque.queue.queue_switch_step2 is 'Transaction of its second step; NULL until that has run';
comment on column pgque.queue.queue_switch_time is 'Time of the last rotation';
comment on column pgque.queue.queue_external_ticker is 'Ticks come from outside, through ticker() with four arguments';
comment on column pgque.queue.queue_disable_insert is 'Refuse new events';
comment on column pgque.queue.queue_ticker_paused is 'Make no ticks';
comment on column pgque.queue.queue_ticker_max_count is 'Tick as soon as so many events wait';
comment on column pgque.queue.queue_ticker_max_lag is 'Tick when events have waited so long';
comment on column pgque.queue.queue_ticker_idle_period is 'Longest time between two ticks of an idle queue';
comment on column pgque.queue.queue_data_pfx is 'Event tables are called <prefix>_<number>';
comment on column pgque.queue.queue_event_seq is 'Sequence of event ids; also counts events for the ticker';
comment on column pgque.queue.queue_tick_seq is 'Sequence of tick ids';
comment on column pgque.queue.queue_extra_maint is 'Functions f(queue name) that maint() runs, if its owner owns them';
comment on column pgque.queue.queue_max_retries is 'Redeliveries before an event becomes a dead letter; NULL means 5';

create table if not exists pgque.tick (
    tick_queue integer not null references pgque.queue (queue_id),
    tick_id bigint not null,
    tick_time timestamptz not null default now(),
    tick_snapshot pg_snapshot not null default pg_current_snapshot(),
    tick_event_seq bigint not null,
    primary key (tick_queue, tick_id)
);
comment on table pgque.tick is 'Marks in the stream: snapshots of what was committed at that moment';
comment on column pgque.tick.tick_queue is 'Queue';
comment on column pgque.tick.tick_id is 'Tick id, growing within the queue';
comment on column pgque.tick.tick_time is 'Time of the tick';
comment on column pgque.tick.tick_snapshot is 'Transactions finished at the tick';
comment on column pgque.tick.tick_event_seq is 'Events sent at the tick, for throttling and statistics only';

create table if not exists pgque.subscription (
    sub_id serial not null,
    sub_queue integer not null constraint sub_queue_fkey references pgque.queue (queue_id),
    sub_consumer integer not null constraint sub_consumer_fkey references pgque.consumer (co_id),
    sub_last_tick bigint,
    sub_active timestamptz not null default now(),
    sub_batch bigint,
    sub_next_tick bigint,
    sub_role text not null default 'normal'
        constraint subscription_sub_role_check check (sub_role in ('normal', 'coop_main', 'coop_member')),
    primary key (sub_queue, sub_consumer)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
comment on table pgque.subscription is 'Place of a consumer in a queue; updated twice per batch';
comment on column pgque.subscription.sub_id is 'Subscription id; one for all members of a group, so that retries reach the group';
comment on column pgque.subscription.sub_queue is 'Queue';
comment on column pgque.subscription.sub_consumer is 'Consumer';
comment on column pgque.subscription.sub_last_tick is 'Tick up to which all is done; start of the open batch of a member';
comment on column pgque.subscription.sub_active is 'Last sign of life';
comment on column pgque.subscription.sub_batch is 'Open batch';
comment on column pgque.subscription.sub_next_tick is 'Tick at the end of the open batch';
comment on column pgque.subscription.sub_role is 'normal, coop_main (cursor of a group) or coop_member (holds batches of a group)';
-- ack, nack and get_batch_events find the subscription of a batch here.
create unique index if not exists subscription_batch_idx on pgque.subscription (sub_batch);
create sequence if not exists pgque.batch_id_seq owned by pgque.subscription.sub_batch;
comment on sequence pgque.batch_id_seq is 'Batch ids, one series for all queues';

create table if not exists pgque.coop_window (
    cw_queue integer not null,
    cw_consumer integer not null,
    cw_from_tick bigint not null,
    cw_to_tick bigint not null,
    primary key (cw_queue, cw_consumer, cw_from_tick),
    constraint coop_window_subscription_fkey foreign key (cw_queue, cw_consumer)
        references pgque.subscription (sub_queue, sub_consumer) on delete cascade
);
comment on table pgque.coop_window is 'Windows that a group has handed out ahead of its cursor';
comment on column pgque.coop_window.cw_queue is 'Queue';
comment on column pgque.coop_window.cw_consumer is 'Main consumer of the group';
comment on column pgque.coop_window.cw_from_tick is 'Tick at the start of the window';
comment on column pgque.coop_window.cw_to_tick is 'Tick at the end of the window';

create table if not exists pgque.event_template (
    ev_id bigint not null,
    ev_time timestamptz not null,
    ev_txid xid8 not null default pg_current_xact_id(),
    ev_owner integer,
    ev_retry integer,
    ev_type text, ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text
);
comment on table pgque.event_template is 'Parent of all event tables; holds no rows';
comment on column pgque.event_template.ev_id is 'Event id, unique within the queue';
comment on column pgque.event_template.ev_time is 'Start of the transaction that sent the event';
comment on column pgque.event_template.ev_txid is 'Top-level transaction that wrote this row';
comment on column pgque.event_template.ev_owner is 'Subscription that alone gets this row; NULL for all';
comment on column pgque.event_template.ev_retry is 'Redeliveries so far; NULL on the first delivery';
comment on column pgque.event_template.ev_type is 'Event type';
comment on column pgque.event_template.ev_data is 'Event data';

create table if not exists pgque.retry_queue (
    ev_retry_after timestamptz not null,
    ev_queue integer not null constraint rq_queue_id_fkey references pgque.queue (queue_id),
    ev_id bigint not null, ev_time timestamptz not null, ev_txid xid8, ev_owner integer not null, ev_retry integer,
    ev_type text, ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text,
    constraint rq_pkey primary key (ev_owner, ev_id)
);
comment on table pgque.retry_queue is 'Events that wait to be delivered again to one subscription';
comment on column pgque.retry_queue.ev_retry_after is 'Time from which the event may come again';
comment on column pgque.retry_queue.ev_queue is 'Queue';
comment on column pgque.retry_queue.ev_txid is 'Always NULL: re-insertion gives a new one';
comment on column pgque.retry_queue.ev_owner is 'Subscription that gets the event';
comment on column pgque.retry_queue.ev_retry is 'Number of the coming redelivery';
-- maint_retry_events() finds due rows here.
create index if not exists rq_retry_idx on pgque.retry_queue (ev_retry_after);

create table if not exists pgque.dead_letter (
    dl_id bigserial primary key,
    dl_queue_id integer not null references pgque.queue (queue_id) on delete cascade,
    dl_consumer_id integer not null references pgque.consumer (co_id) on delete cascade,
    dl_time timestamptz not null default now(),
    dl_reason text,
    ev_id bigint not null, ev_time timestamptz not null, ev_txid xid8, ev_retry integer,
    ev_type text, ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text
);
comment on table pgque.dead_letter is 'Events whose retries ran out, kept with the reason';
comment on column pgque.dead_letter.dl_id is 'Dead letter id';
comment on column pgque.dead_letter.dl_queue_id is 'Queue';
comment on column pgque.dead_letter.dl_consumer_id is 'Consumer that gave up; the main consumer for members of a group';
comment on column pgque.dead_letter.dl_time is 'Time of giving up';
comment on column pgque.dead_letter.dl_reason is 'Reason given by the consumer';
-- Giving up twice on one event keeps one row.
create unique index if not exists dl_queue_consumer_ev_idx
on pgque.dead_letter (dl_queue_id, dl_consumer_id, ev_id);
-- dlq_inspect() and dlq_purge() read by age.
create index if not exists dl_queue_time_idx on pgque.dead_letter (dl_queue_id, dl_time);
-- Operators group letters by type and cause (the reason without addresses, keys and
-- numbers), and look for what the producer called an event.
create index if not exists dl_cause_idx on pgque.dead_letter (
    dl_queue_id, dl_consumer_id, left(coalesce(ev_type, ''), 100),
    left(regexp_replace(coalesce(dl_reason, ''),
    '\S+@\S+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]+', '#', 'g'), 200),
    dl_id
);
create index if not exists dl_key_idx on pgque.dead_letter using hash (ev_extra1);

do $$
-- Columns that mean the same everywhere.
declare v_column record;
begin
    for v_column in
        select a.attrelid::regclass as relation, a.attname,
            coalesce(col_description(t.attrelid, t.attnum), 'Free for the producer') as comment
        from pg_attribute a
        left join pg_attribute t on t.attrelid = 'pgque.event_template'::regclass and t.attname = a.attname
        where a.attrelid in ('pgque.message'::regclass, 'pgque.event_template'::regclass,
                'pgque.retry_queue'::regclass, 'pgque.dead_letter'::regclass)
            and a.attname ~ '^(ev_)?extra|^ev_' and col_description(a.attrelid, a.attnum) is null
    loop
        execute format('comment on column %s.%I is %L', v_column.relation, v_column.attname, v_column.comment);
    end loop;
end $$;

create or replace view pgque._window as
select s.sub_batch as batch_id, s.sub_queue as queue_id, s.sub_consumer as consumer_id, s.sub_id,
    s.sub_last_tick as from_tick, f.tick_time as from_time, f.tick_event_seq as from_seq, f.tick_snapshot as from_snapshot,
    s.sub_next_tick as to_tick, t.tick_time as to_time, t.tick_event_seq as to_seq, t.tick_snapshot as to_snapshot
from pgque.subscription s
left join pgque.tick f on f.tick_queue = s.sub_queue and f.tick_id = s.sub_last_tick
left join pgque.tick t on t.tick_queue = s.sub_queue and t.tick_id = s.sub_next_tick
where s.sub_batch is not null;
comment on view pgque._window is 'Open batches: all that is needed to read the events between the two ticks of each';
