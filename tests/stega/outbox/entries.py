"""What became of entries."""

from django_q.models import OrmQ

from stega.models import OutboxEntry


def queued_keys():
    return {package.task["args"][0] for package in OrmQ.objects.all()}


def attempts_of(entry):
    return OutboxEntry.objects.get(key=entry.key).attempts
