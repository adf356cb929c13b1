"""stega/web/middleware.py: what no page can make anything of is refused before it reaches one."""

import pytest
from django.test import Client
from django.urls import reverse

pytestmark = pytest.mark.django_db(databases=["default", "jobs"])

CHARSETS = ["unicode_escape", "raw_unicode_escape", "utf-7", "rot13", "base64", "hex", "zlib", "idna", "latin-1"]


@pytest.fixture
def page(as_user, admin):
    return as_user(admin)


@pytest.mark.parametrize("charset", CHARSETS)
@pytest.mark.parametrize("address", ["/accounts/login/", "/tickets/new/", "/accounts/profile/", "/i18n/setlang/"])
def test_a_form_in_another_charset_is_refused(page, address, charset):
    body = b'--x\r\nContent-Disposition: form-data; name="title"\r\n\r\n\\ud83d\r\n--x--\r\n'

    response = page.generic("POST", address, body, content_type=f"multipart/form-data; boundary=x; charset={charset}")

    assert response.status_code == 400


@pytest.mark.parametrize("charset", ["utf-8", "UTF-8", "utf8", "no-such-charset"])
def test_a_form_in_utf_8_is_taken(charset):
    form = f"application/x-www-form-urlencoded; charset={charset}"

    response = Client().generic("POST", "/accounts/login/", "username=a", content_type=form)

    assert response.status_code == 200


@pytest.mark.parametrize("name", ["sessionid", "csrftoken", "django_language"])
def test_a_cookie_with_a_nul_counts_as_none(settings, name):
    browser = Client()
    browser.cookies[settings.SESSION_COOKIE_NAME if name == "sessionid" else name] = "abcdefghij\x00"

    assert browser.get("/accounts/login/").status_code == 200


@pytest.mark.parametrize("page_name", ["success", "failure", "schedule"])
@pytest.mark.parametrize("action", ["change", "history", "delete"])
def test_an_address_with_a_nul_does_not_exist(page, page_name, action):
    assert page.get(f"/admin/django_q/{page_name}/%00/{action}/").status_code == 404


@pytest.mark.parametrize(
    ("model", "query"),
    [
        ("tickets_ticketevent", "created_at__year=0"),
        ("tickets_comment", "created_at__year=99999999"),
        ("notifications_delivery", "created_at__year=0"),
        ("tickets_ticket", "status__exact=%00"),
    ],
)
def test_a_filter_that_is_none_is_the_requests_fault(page, model, query):
    response = page.get(reverse(f"admin:{model}_changelist") + "?" + query)

    assert response.status_code in (302, 400)


def test_who_is_signed_in_is_not_sent_round_in_a_circle(page):
    response = page.get("/accounts/login/?next=/accounts/login/")

    assert (response.status_code, response["Location"]) == (302, "/")


@pytest.mark.parametrize("given", ["abc-123", "A.b_c", "x" * 64])
def test_a_request_keeps_the_id_that_a_proxy_gave_it(given):
    assert Client().get("/accounts/login/", headers={"x-request-id": given})["X-Request-ID"] == given


@pytest.mark.parametrize("given", ["", "x" * 65, "two words", "line\nbreak", "é", '"quoted"'])
def test_a_request_gets_an_id_of_its_own_when_there_is_none_to_keep(given):
    answers = [Client().get("/accounts/login/", headers={"x-request-id": given}) for _ in range(2)]

    names = {answer["X-Request-ID"] for answer in answers}
    assert len(names) == 2
    assert given not in names


def test_what_is_refused_at_the_door_has_an_id_too():
    refused = Client().post(
        "/accounts/login/", "a=b", content_type="application/x-www-form-urlencoded; charset=latin-1"
    )

    assert (refused.status_code, bool(refused["X-Request-ID"])) == (400, True)


@pytest.mark.parametrize(
    "address",
    ["/tickets/", "/accounts/login/", "/accounts/profile/", "/admin/", "/admin/operations/record/", "/tickets/0/"],
)
def test_no_page_is_stored_by_whoever_it_passes(page, address):
    assert "no-store" in page.get(address)["Cache-Control"]
