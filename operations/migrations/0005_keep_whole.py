from django.db import migrations

KEEP = """
create function operations_keep_record() returns trigger language plpgsql as $$
begin
    raise exception 'the record of operator actions is append-only'
        using errcode = 'integrity_constraint_violation';
end
$$;
create trigger operations_keep_record before truncate on operations_operatoraction
for each statement execute function operations_keep_record();
"""

FORGET = """
drop trigger operations_keep_record on operations_operatoraction;
drop function operations_keep_record();
"""


class Migration(migrations.Migration):
    dependencies = [("operations", "0004_settle")]

    operations = [migrations.RunSQL(KEEP, FORGET)]
