import pytest

from stega.pgque import bootstrap
from tests.support.upstream import Repository


@pytest.fixture
def repository(tmp_path):
    """Upstream's repository, with one release."""
    repository = Repository(tmp_path / "repository")
    repository.tag("v0.2.0")
    return repository


@pytest.fixture
def vendor(tmp_path, monkeypatch):
    """A vendor/pgque/ of the test's own, with nothing of upstream's."""
    folder = tmp_path / "vendor"
    folder.mkdir()
    for name in ("VERSION", "build.py", "pgque.sql"):
        (folder / name).write_bytes((bootstrap.VENDOR / name).read_bytes())
    (folder / "src").symlink_to(bootstrap.VENDOR / "src")
    monkeypatch.setattr(bootstrap, "VENDOR", folder)
    return folder


@pytest.fixture
def upstream(vendor):
    """Where a release goes."""
    return vendor / "upstream"
