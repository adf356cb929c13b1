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
insert into pgque.config (singleton) values (true) on conflict do nothing;

create table if not exists pgque.consumer (
    co_id serial primary key,
    co_name text not null constraint consumer_name_uq unique
);
comment on table pgque.consumer is 'Names of consumers; members of a group are called consumer.subconsumer';

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

create table if not exists pgque.tick (
    tick_queue integer not null references pgque.queue (queue_id),
    tick_id bigint not null,
    tick_time timestamptz not null default now(),
    tick_snapshot pg_snapshot not null default pg_current_snapshot(),
    tick_event_seq bigint not null,
    primary key (tick_queue, tick_id)
);
comment on table pgque.tick is 'Marks in the stream: snapshots of what was committed at that moment';

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

create table if not exists pgque.event_template (
    ev_id bigint not null,
    ev_time timestamptz not null,
    ev_txid xid8 not null default pg_current_xact_id(),
    ev_owner integer,
    ev_retry integer,
    ev_type text, ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text
);
comment on table pgque.event_template is 'Parent of all event tables; holds no rows';

create table if not exists pgque.retry_queue (
    ev_retry_after timestamptz not null,
    ev_queue integer not null constraint rq_queue_id_fkey references pgque.queue (queue_id),
    ev_id bigint not null, ev_time timestamptz not null, ev_txid xid8, ev_owner integer not null, ev_retry integer,
    ev_type text, ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text,
    constraint rq_pkey primary key (ev_owner, ev_id)
);
comment on table pgque.retry_queue is 'Events that wait to be delivered again to one subscription';
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

create or replace view pgque._window as
select s.sub_batch as batch_id, s.sub_queue as queue_id, s.sub_consumer as consumer_id, s.sub_id,
    s.sub_last_tick as from_tick, f.tick_time as from_time, f.tick_event_seq as from_seq, f.tick_snapshot as from_snapshot,
    s.sub_next_tick as to_tick, t.tick_time as to_time, t.tick_event_seq as to_seq, t.tick_snapshot as to_snapshot
from pgque.subscription s
left join pgque.tick f on f.tick_queue = s.sub_queue and f.tick_id = s.sub_last_tick
left join pgque.tick t on t.tick_queue = s.sub_queue and t.tick_id = s.sub_next_tick
where s.sub_batch is not null;
comment on view pgque._window is 'Open batches: all that is needed to read the events between the two ticks of each';
