from django.db import migrations

VIEW = """
create view operations_slackline as
select 'slack ' || left(encode(sha256(convert_to(slack_webhook_url, 'UTF8')), 'hex'), 16) as line, name as product
from tickets_product where slack_webhook_url <> '';
comment on view operations_slackline is
    'Which products post by which line of notifications_circuit, for roles that may not read a webhook.';
"""


class Migration(migrations.Migration):
    dependencies = [("operations", "0006_moved_at"), ("tickets", "0003_once_per_form")]

    operations = [migrations.RunSQL(VIEW, "drop view operations_slackline")]
