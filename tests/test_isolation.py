"""Each test begins on clean databases, whichever tests ran before it in whatever order."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.apps import apps
from django.contrib.auth import get_permission_codename
from django.contrib.auth.models import Permission
from django.contrib.sessions.models import Session as WebSession
from django.db import connections

from accounts.models import User
from operations.models import Kind, OperatorAction
from stega.pgque import client
from tests.support import emptying, servers
from tests.support.processes import ROOT
from tests.support.scheduling import TOGETHER, Scheduler
from tests.support.sessions import Session
from tests.support.waiting import wait_until
from tests.tickets.actions.written import somebody_waits_for_a_lock

BELONGS_TO_DJANGO = {"contenttypes", "auth"}


@pytest.mark.django_db(databases=["default", "jobs", "events"])
@pytest.mark.parametrize("number", range(5))
def test_no_row_of_another_test_is_left(number):
    models = [model for model in apps.get_models() if model._meta.app_label not in BELONGS_TO_DJANGO]

    left = {model._meta.label: model.objects.count() for model in models if model._meta.managed}

    assert not {label: count for label, count in left.items() if count}


@pytest.mark.django_db
@pytest.mark.parametrize("number", range(5))
def test_every_permission_is_there_and_none_of_another_test(number):
    wanted = {
        codename
        for options in (model._meta for model in apps.get_models())
        for codename in (
            *(get_permission_codename(action, options) for action in options.default_permissions),
            *(codename for codename, _name in options.permissions),
        )
    }

    assert set(Permission.objects.values_list("codename", flat=True)) == wanted


@pytest.mark.django_db(transaction=True)
def test_what_was_committed_is_gone_whatever_guards_it(admin):
    OperatorAction.objects.create(kind=Kind.RUN_SCHEDULE, actor=admin, target={}, count=1, reason="why")

    emptying.empty("default")

    assert not OperatorAction.objects.exists()
    assert not User.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_nothing_is_left_of_a_large_table():
    User.objects.bulk_create(User(username=f"{number}", email="x" * 200) for number in range(4000))

    emptying.empty("default")

    with connections["default"].cursor() as cursor:
        cursor.execute("select pg_relation_size('accounts_user')")
        assert cursor.fetchone() == (0,)


@pytest.mark.django_db(transaction=True)
def test_a_writer_that_is_about_to_end_is_waited_for():
    """As the session of a killed process may be."""
    with Session(servers.app.url(str(connections["default"].settings_dict["NAME"]))) as writer:
        writer.rows("insert into django_session values ('key', '', now())")
        with ThreadPoolExecutor(1) as pool:
            emptied = pool.submit(empty_and_hang_up)
            wait_until(somebody_waits_for_a_lock, timeout=20)
            writer.commit()
            emptied.result(20)

    assert not WebSession.objects.exists()


def empty_and_hang_up():
    emptying.empty("default")
    connections.close_all()


@pytest.mark.django_db(databases=["events"])
@pytest.mark.parametrize("number", range(5))
def test_no_queue_of_another_test_is_left(number, settings):
    assert {row["queue_name"] for row in client.queue_info()} <= {settings.PGQUE_QUEUE}


@pytest.mark.parametrize("path", sorted(TOGETHER))
def test_a_file_whose_tests_share_what_takes_long_to_make_stays_with_one_worker(path):
    scope_of = Scheduler.__new__(Scheduler)._split_scope

    assert (ROOT / path).exists()
    assert scope_of(f"{path}::test_one[a::b]") == scope_of(f"{path}::test_two") != scope_of("tests/test_guide.py::test")
