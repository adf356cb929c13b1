import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from stega.pgque import bootstrap, vendoring
from stega.pgque.upstream import Release, Upstream, UpstreamError
from stega.pgque.vendoring import UPDATE, Inspection, VendoringError


class Command(BaseCommand):
    help = (
        "Upstream's own PgQue in vendor/pgque/upstream/, for PGQUE_ENGINE=upstream. Without an action: status. Only "
        "list, update and diff use the network, through git. Exit code 1: something differs; 2: the action failed."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON document")
        parser.set_defaults(action="status")
        actions = parser.add_subparsers(title="actions")
        self._add(actions, "status", "compare what is on this disk with its checksums", network=False)
        self._add(actions, "list", "the tags of the repository, newest first")
        self._add(actions, "update", "put the files of a tag in place of what is there").add_argument("tag")
        diff = self._add(actions, "diff", "compare pgque.sql with that of a tag; without a tag: of its own")
        diff.add_argument("tag", nargs="?")

    def _add(self, actions: Any, name: str, text: str, *, network: bool = True) -> CommandParser:
        parser: CommandParser = actions.add_parser(name, help=text, description=text)
        parser.set_defaults(action=name)
        parser.add_argument(
            "--json", action="store_true", dest="as_json", default=argparse.SUPPRESS, help="print one JSON document"
        )
        if network:
            default, help = settings.PGQUE_REPOSITORY, "a git repository (default: that of PGQUE_REPOSITORY)"
            parser.add_argument("--repository", metavar="URL", default=default, help=help)
        return parser

    def handle(self, *, action: str, **options: Any) -> None:
        self.folder = bootstrap.VENDOR / "upstream"
        try:
            getattr(self, f"_{action}")(**options)
        except (UpstreamError, VendoringError) as error:
            raise CommandError(str(error), returncode=2) from None

    def _status(self, *, as_json: bool, **options: Any) -> None:
        found = vendoring.inspect(self.folder)
        engine = {"version": bootstrap.vendored_version(), "is_fresh": bootstrap.is_built()}
        is_ok = found.is_ok and engine["is_fresh"]
        document = {"is_ok": is_ok, "engine": engine, "upstream": asdict(found)}
        self._say(document if as_json else f"{_upstream_text(found)}\n{_engine_text(engine)}")
        if not is_ok:
            sys.exit(1)

    def _list(self, *, as_json: bool, repository: str, **options: Any) -> None:
        with Upstream(repository) as upstream:
            tags = upstream.tags()
        source = vendoring.inspect(self.folder).source
        vendored = source.tag if source else None
        rows = [{"tag": tag, "commit": commit, "is_vendored": tag == vendored} for tag, commit in tags.items()]
        lines = [f"{'*' if row['is_vendored'] else ' '} {row['tag']}  {row['commit']}" for row in rows]
        document = {"repository": upstream.shown_url, "tags": rows}
        self._say(document if as_json else "\n".join(lines) or "no tags")

    def _update(self, *, as_json: bool, repository: str, tag: str, **options: Any) -> None:
        release, shown_url = _release(repository, tag)
        source = vendoring.manifest(release, shown_url, timezone.now())
        vendoring.write(self.folder, release, source)
        text = (
            f"vendor/pgque/upstream/ is {tag} of {shown_url}, commit {release.commit}: {', '.join(source.files)}\n"
            "Read its upgrade notes, then install it: PGQUE_ENGINE=upstream python manage.py pgque_bootstrap"
        )
        self._say(asdict(source) if as_json else text)

    def _diff(self, *, as_json: bool, repository: str, tag: str | None, **options: Any) -> None:
        found = vendoring.inspect(self.folder)
        tag = tag or (found.source.tag if found.source else None)
        if tag is None:
            raise VendoringError(f"there is no tag to compare with: {found.problem}")
        release, _ = _release(repository, tag)
        comparison = vendoring.compare(self.folder, release)
        moved = vendoring.moved(found.source, release)
        document = {"tag": tag, "commit": release.commit, "moved": moved, **asdict(comparison)}
        self._say(document if as_json else comparison.text or f"upstream/pgque.sql is the one of {tag}")
        if moved and not as_json:
            self.stderr.write(moved)
        if comparison.is_different:
            sys.exit(1)

    def _say(self, document: dict[str, Any] | str) -> None:
        self.stdout.write(document if isinstance(document, str) else json.dumps(document, indent=2))


def _release(repository: str, tag: str) -> tuple[Release, str]:
    with Upstream(repository) as upstream:
        return upstream.release(tag), upstream.shown_url


def _upstream_text(found: Inspection) -> str:
    source = found.source
    if source is None:
        return f"upstream: {found.problem}"
    lines = [f"upstream: {source.tag} of {source.repo}, commit {source.commit}, fetched {source.downloaded_at}"]
    lines += [f"  {name}: {state}" for name, state in found.states.items()]
    if not found.is_ok:
        lines.append(f"  Fetch the files again: {UPDATE} {source.tag}")
    return "\n".join(lines)


def _engine_text(engine: dict[str, Any]) -> str:
    state = "fresh" if engine["is_fresh"] else "stale: run `make build-sql`"
    return f"built-in engine: {engine['version']}, pgque.sql is {state}"
