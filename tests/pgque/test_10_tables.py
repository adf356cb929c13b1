"""The tables that programs and operators see: names, types, defaults, constraints."""

import psycopg
import pytest

COLUMNS = {
    "config": "singleton boolean, ticker_job_id bigint, maint_job_id bigint, scheduler text, tick_period_ms integer,"
    " installed_at timestamp with time zone",
    "consumer": "co_id integer, co_name text",
    "queue": "queue_id integer, queue_name text, queue_ntables integer, queue_cur_table integer,"
    " queue_rotation_period interval, queue_switch_step1 bigint, queue_switch_step2 bigint,"
    " queue_switch_time timestamp with time zone, queue_external_ticker boolean, queue_disable_insert boolean,"
    " queue_ticker_paused boolean, queue_ticker_max_count integer, queue_ticker_max_lag interval,"
    " queue_ticker_idle_period interval, queue_data_pfx text, queue_event_seq text, queue_tick_seq text,"
    " queue_extra_maint text[], queue_max_retries integer",
    "tick": "tick_queue integer, tick_id bigint, tick_time timestamp with time zone, tick_snapshot pg_snapshot,"
    " tick_event_seq bigint",
    "subscription": "sub_id integer, sub_queue integer, sub_consumer integer, sub_last_tick bigint,"
    " sub_active timestamp with time zone, sub_batch bigint, sub_next_tick bigint, sub_role text",
    "event_template": "ev_id bigint, ev_time timestamp with time zone, ev_txid xid8, ev_owner integer,"
    " ev_retry integer, ev_type text, ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text",
    "retry_queue": "ev_retry_after timestamp with time zone, ev_queue integer, ev_id bigint,"
    " ev_time timestamp with time zone, ev_txid xid8, ev_owner integer, ev_retry integer, ev_type text, ev_data text,"
    " ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text",
    "dead_letter": "dl_id bigint, dl_queue_id integer, dl_consumer_id integer, dl_time timestamp with time zone,"
    " dl_reason text, ev_id bigint, ev_time timestamp with time zone, ev_txid xid8, ev_retry integer, ev_type text,"
    " ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text, ev_extra4 text",
    "message": "msg_id bigint, batch_id bigint, type text, payload text, retry_count integer,"
    " created_at timestamp with time zone, extra1 text, extra2 text, extra3 text, extra4 text",
}


@pytest.mark.parametrize("table", COLUMNS)
def test_columns_are_those_of_the_contract_in_its_order(sql, table):
    columns = sql.value(
        "select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum)"
        " from pg_attribute where attrelid = %s::regclass and attnum > 0 and not attisdropped",
        [f"pgque.{table}"],
    )

    assert columns == COLUMNS[table]


@pytest.mark.parametrize(
    "name",
    ["consumer_name_uq", "queue_name_uq", "sub_queue_fkey", "sub_consumer_fkey", "subscription_sub_role_check",
     "rq_queue_id_fkey", "rq_pkey"],
)  # fmt: skip
def test_constraints_have_the_names_of_the_contract(sql, name):
    query = "select count(*) from pg_constraint where connamespace = 'pgque'::regnamespace and conname = %s"
    assert sql.value(query, [name]) == 1


@pytest.mark.parametrize(
    "name",
    ["subscription_batch_idx", "rq_retry_idx", "dl_queue_consumer_ev_idx", "dl_queue_time_idx", "batch_id_seq",
     "consumer_co_id_seq", "queue_queue_id_seq", "subscription_sub_id_seq", "dead_letter_dl_id_seq"],
)  # fmt: skip
def test_indexes_and_sequences_have_the_names_of_the_contract(sql, name):
    assert sql.value("select to_regclass(%s)::text", [f"pgque.{name}"]) == f"pgque.{name}"


def test_event_tables_are_a_family_with_an_index_on_the_transaction(sql, queue):
    prefix = sql.value("select queue_data_pfx from pgque.queue where queue_name = %s", [queue])

    parents = "select array_agg(inhrelid::regclass::text order by 1) from pg_inherits where inhparent = %s::regclass"

    assert sql.value(parents, [prefix]) == [f"{prefix}_{number}" for number in range(3)]
    assert sql.value("select inhparent::regclass::text from pg_inherits where inhrelid = %s::regclass", [prefix]) == (
        "pgque.event_template"
    )
    assert sql.value("select to_regclass(%s) is not null", [f"{prefix}_1_txid_idx"])


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("insert into pgque.config (singleton) values (false)", psycopg.errors.CheckViolation),
        ("update pgque.config set scheduler = 'cron'", psycopg.errors.CheckViolation),
        ("update pgque.config set tick_period_ms = 3", psycopg.errors.CheckViolation),
        ("insert into pgque.consumer (co_name) values ('x'), ('x')", psycopg.errors.UniqueViolation),
        (
            "insert into pgque.subscription (sub_queue, sub_consumer) values (-1, -1)",
            psycopg.errors.ForeignKeyViolation,
        ),
    ],
)
def test_the_tables_refuse_what_makes_no_sense(sql, statement, error):
    with pytest.raises(error):
        sql.rows(statement)
