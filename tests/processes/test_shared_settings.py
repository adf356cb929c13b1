"""Two processes with different settings: they say so, or the second does not start."""

from tests.support.processes import manage


def test_a_worker_with_another_limit_of_retries_works_and_says_so(start):
    start("sla_breach_worker")

    worker = start("notification_worker", PGQUE_MAX_RETRIES=7)

    assert "PGQUE_MAX_RETRIES is 7 here, but 30 for sla_breach_worker on " in worker.output


def test_a_process_with_another_secret_key_refuses_to_start_until_the_former_is_its_fallback(start, env):
    start("notification_worker", STEGA_SECRET_KEY="former" * 10)
    new = {"STEGA_SECRET_KEY": "new" * 20}

    with manage("qcluster", env={**env, **new}) as refusing:
        code = refusing.wait()
        said = refusing.output
    rotated = start("qcluster", saying="running", STEGA_SECRET_KEY_FALLBACKS="former" * 10, **new)

    assert code == 1
    assert said.startswith("stega: STEGA_SECRET_KEY is another than that of notification_worker")
    assert said.count("\n") == 1
    assert "STEGA_SECRET_KEY is new here" in rotated.output
