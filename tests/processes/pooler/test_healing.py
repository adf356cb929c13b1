"""Whatever happens to the pooler or to a server behind it, all processes go on, and everybody is told once."""

import signal

import pytest

from tests.processes.test_healing import (  # noqa: F401 - told again
    cut,
    fail_over,
    require_all_to_go_on,
    restart,
    test_a_worker_hears_wake_ups_again_after_its_connection_was_cut,
)
from tests.support.waiting import wait_until


@pytest.mark.parametrize("happen", [restart, cut])
def test_all_processes_go_on_after_a_server_was_lost(start, mailbox, admin, happen):
    require_all_to_go_on(start, mailbox, admin, happen)


def test_all_processes_go_on_after_a_fail_over(start, mailbox, admin):
    require_all_to_go_on(start, mailbox, admin, fail_over)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_all_processes_go_on_after_the_pooler_was_lost(start, mailbox, admin, pooler, how):
    def restart_pooler(alias, work, has_complained):
        work()
        pooler.stop(how)
        wait_until(lambda: has_complained("Connection refused"), timeout=20)
        pooler.start()

    require_all_to_go_on(start, mailbox, admin, restart_pooler, aliases=["events"])


@pytest.mark.parametrize("pooler_settings", [{"default_pool_size": 2, "query_wait_timeout": 2}])
@pytest.mark.parametrize("lasting", ["until somebody waits", "until those who wait have given up"])
def test_all_processes_go_on_after_a_pause(start, mailbox, admin, pooler, lasting):
    def pause(alias, work, has_complained):
        pooler.tell("pause")
        work()
        wait_until(lambda: any(row["cl_waiting"] for row in pooler.tell("show pools")), timeout=20)
        if lasting != "until somebody waits":
            wait_until(lambda: has_complained("query_wait_timeout"), timeout=20)
        pooler.tell("resume")

    require_all_to_go_on(start, mailbox, admin, pause)


def test_all_processes_go_on_while_the_pooler_is_reconfigured(start, mailbox, admin, pooler):
    def reconfigure(alias, work, has_complained):
        work()
        pooler.configure(default_pool_size=4, server_idle_timeout=1, server_lifetime=1)
        pooler.tell("reconnect")

    require_all_to_go_on(start, mailbox, admin, reconfigure)
