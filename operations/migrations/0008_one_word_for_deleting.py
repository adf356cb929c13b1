from django.db import migrations

CODENAME = "operate_console"
BEFORE = "Can replay, purge and retry in the console"
NAME = "Can replay, delete and retry in the console"


def rename(apps, schema_editor):
    _name(apps, schema_editor, NAME)


def name_as_before(apps, schema_editor):
    _name(apps, schema_editor, BEFORE)


def _name(apps, schema_editor, name):
    """Where the permission is there: Django makes what is missing, and leaves names as they are."""
    permissions = apps.get_model("auth", "Permission").objects.using(schema_editor.connection.alias)
    permissions.filter(content_type__app_label="operations", codename=CODENAME).update(name=name)


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0007_slack_lines"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="operatoraction",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("view_console", "Can see the console"),
                    ("operate_console", NAME),
                    ("view_payload", "Can read payloads in the console"),
                ],
                "verbose_name": "operator action",
                "verbose_name_plural": "operator actions",
            },
        ),
        migrations.RunPython(rename, name_as_before),
    ]
