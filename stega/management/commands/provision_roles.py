import re
from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from stega import env
from stega.installation.privileges import KINDS
from stega.installation.provisioning import provision


def role_prefix(text: str) -> str:
    """An argument type: the beginning of the roles' names."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", text):
        raise ArgumentTypeError(f"{text!r} must be small letters, digits and _, 40 at most, beginning with a letter")
    return text


class Command(BaseCommand):
    help = (
        "Make a database role for each kind of process and give it what that process needs in each database, and "
        "nothing else. Run it as the owner of the databases, after migrate and pgque_bootstrap. Idempotent; may run "
        "in several places at once. The password of a role that is made comes from STEGA_<KIND>_DATABASE_PASSWORD, "
        f"<KIND> one of {', '.join(kind.upper() for kind in KINDS)}."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--prefix", type=role_prefix, default="stega", help="of the names (default: %(default)s)")
        parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
        parser.add_argument(
            "--reset-passwords", action="store_true", help="set the passwords of roles that exist as well"
        )

    def handle(self, *, prefix: str, dry_run: bool, reset_passwords: bool, **options: Any) -> None:
        passwords = {kind: env.text(f"STEGA_{kind.upper()}_DATABASE_PASSWORD") for kind in KINDS}
        provision(
            prefix,
            passwords,
            reset_passwords=reset_passwords,
            dry_run=dry_run,
            say=lambda line: self.stdout.write(f"provision_roles: {line}"),
        )
        if dry_run:
            self.stdout.write("provision_roles: nothing of this was done: --dry-run")
