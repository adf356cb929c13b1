from django.db import migrations

# operations.ways: the runs of one task, by the name that the outbox gave it.
# operations.facts.tasks, stega.results.prune: what ended in the last hour, or long ago.
# operations.records.failures: the newest of the few that failed.
CREATE = """
create index if not exists operations_task_name on django_q_task (name);
create index if not exists operations_task_stopped on django_q_task (stopped);
create index if not exists operations_task_failed on django_q_task (stopped desc) where not success;
"""

DROP = """
drop index if exists operations_task_name, operations_task_stopped, operations_task_failed;
"""


class Migration(migrations.Migration):
    """Indexes of django-q2's results, where these live."""

    dependencies = [("operations", "0002_append_only"), ("django_q", "0018_task_success_index")]

    operations = [migrations.RunSQL(CREATE, DROP, hints={"of_app": "django_q"})]
