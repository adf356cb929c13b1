from django.db import migrations

KEEP = """
create function operations_keep_action() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' or old.finished_at is not null
        or (old.id, old.key, old.kind, old.actor_id, old.target, old.count, old.reason, old.requested_at, old.up_to)
            is distinct from
            (new.id, new.key, new.kind, new.actor_id, new.target, new.count, new.reason, new.requested_at, new.up_to)
    then
        raise exception 'the record of operator actions is append-only'
            using errcode = 'integrity_constraint_violation';
    end if;
    return new;
end
$$;
create trigger operations_keep_action before update or delete on operations_operatoraction
for each row execute function operations_keep_action();
"""

FORGET = """
drop trigger operations_keep_action on operations_operatoraction;
drop function operations_keep_action();
"""


class Migration(migrations.Migration):
    dependencies = [("operations", "0001_initial")]

    operations = [migrations.RunSQL(KEEP, FORGET)]
