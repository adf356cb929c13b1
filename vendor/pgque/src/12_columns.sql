-- What each column means.

do $$
declare v_columns record; v_relation text;
begin
    for v_columns in select * from (values
        ('config', array[
            'singleton', 'Always true: one row only', 'installed_at', 'Time of the first installation',
            'ticker_job_id', 'Outside job that runs the ticker', 'maint_job_id', 'Outside job that runs maintenance',
            'scheduler', 'Outside scheduler, if any', 'tick_period_ms', 'Pause between two passes of ticker_loop()']),
        ('consumer', array['co_id', 'Consumer id', 'co_name', 'Consumer name']),
        ('queue', array[
            'queue_id', 'Part of the names of its tables', 'queue_name', 'The NOTIFY channel is pgque_<name>',
            'queue_ntables', 'Number of event tables in rotation', 'queue_cur_table', 'Event table that producers write to',
            'queue_rotation_period', 'Least time between two rotations', 'queue_switch_time', 'Time of the last rotation',
            'queue_switch_step1', 'Transaction of the last rotation, first step',
            'queue_switch_step2', 'Transaction of its second step; NULL until that has run',
            'queue_external_ticker', 'Ticks come through ticker() with four arguments',
            'queue_disable_insert', 'Refuse new events', 'queue_ticker_paused', 'Make no ticks',
            'queue_ticker_max_count', 'Tick when so many events wait', 'queue_ticker_max_lag', 'Tick when events waited so long',
            'queue_ticker_idle_period', 'Longest time between two ticks of an idle queue',
            'queue_data_pfx', 'Event tables are called <prefix>_<number>', 'queue_tick_seq', 'Sequence of tick ids',
            'queue_event_seq', 'Sequence of event ids; also counts events for the ticker',
            'queue_extra_maint', 'Functions f(queue name) that maint() runs, if its owner owns them',
            'queue_max_retries', 'Redeliveries before an event becomes a dead letter; NULL means 5']),
        ('tick', array[
            'tick_queue', 'Queue', 'tick_id', 'Grows within the queue', 'tick_time', 'Time of the tick',
            'tick_snapshot', 'Transactions finished at the tick', 'tick_event_seq', 'Events sent, for throttling and statistics']),
        ('subscription', array[
            'sub_id', 'One for all members of a group, so that retries reach the group',
            'sub_queue', 'Queue', 'sub_consumer', 'Consumer', 'sub_active', 'Last sign of life', 'sub_batch', 'Open batch',
            'sub_last_tick', 'Tick up to which all is done; of a member: start of the open batch',
            'sub_next_tick', 'Tick at the end of the open batch',
            'sub_role', 'normal, coop_main (cursor of a group) or coop_member (holds batches of a group)']),
        ('coop_window', array[
            'cw_queue', 'Queue', 'cw_consumer', 'Main consumer of the group',
            'cw_from_tick', 'Tick at the start of the window', 'cw_to_tick', 'Tick at the end of the window']),
        ('event_template retry_queue dead_letter', array[
            'ev_id', 'Event id, unique within the queue', 'ev_time', 'Start of the transaction that sent the event',
            'ev_txid', 'Top-level transaction that wrote this row', 'ev_type', 'Event type', 'ev_data', 'Event data',
            'ev_retry', 'Redeliveries so far; NULL on the first delivery', 'ev_extra1', 'Free for the producer',
            'ev_extra2', 'Free for the producer', 'ev_extra3', 'Free for the producer', 'ev_extra4', 'Free for the producer']),
        ('event_template retry_queue', array['ev_owner', 'Subscription that alone gets this row; NULL for all']),
        ('retry_queue', array[
            'ev_retry_after', 'Time from which the event may come again', 'ev_queue', 'Queue',
            'ev_txid', 'Always NULL: re-insertion gives a new one', 'ev_retry', 'Number of the coming redelivery']),
        ('dead_letter', array[
            'dl_id', 'Dead letter id', 'dl_queue_id', 'Queue', 'dl_time', 'Time of giving up',
            'dl_consumer_id', 'Who gave up; the main consumer for members of a group', 'dl_reason', 'Reason that it gave']),
        ('message', array[
            'msg_id', 'Event id', 'batch_id', 'Batch to acknowledge', 'type', 'Event type', 'payload', 'Event data, as sent',
            'retry_count', 'Redeliveries so far; NULL on the first', 'created_at', 'Start of the sending transaction',
            'extra1', 'Free for the producer', 'extra2', 'Free for the producer',
            'extra3', 'Free for the producer', 'extra4', 'Free for the producer'])
    ) c (relations, meanings) loop
        foreach v_relation in array string_to_array(v_columns.relations, ' ') loop
            for i in 1..cardinality(v_columns.meanings) by 2 loop
                execute format('comment on column pgque.%I.%I is %L',
                    v_relation, v_columns.meanings[i], v_columns.meanings[i + 1]);
            end loop;
        end loop;
    end loop;
end $$;
