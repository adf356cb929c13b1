"""Pages that say no: in the language of the reader, and with nothing written."""

import pytest
from django.template.loader import render_to_string
from django.test import Client

from tests.tickets.views.pages import nothing_written, page, texts

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["/tickets/", "/tickets/new/", "/tickets/1/", "/tickets/1/comment/"])
def test_who_is_not_signed_in_is_asked_to_sign_in(client, path):
    response = client.get(path)

    assert response.url == f"/accounts/login/?next={path}"


@pytest.mark.parametrize("debug", [True, False])
def test_a_ticket_that_is_not_found_gets_a_page_in_the_language_of_the_user(as_user, customer, settings, debug):
    settings.DEBUG = debug
    customer.language = "pt-br"
    customer.save()

    response = as_user(customer).get("/tickets/4711/")

    assert response.status_code == 404
    assert "Não encontrado" in texts(response)


def test_a_form_without_its_token_is_refused_in_the_language_of_the_user(customer, ticket):
    customer.language = "pt-br"
    customer.save()
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(customer)

    response = browser.post(page(ticket, "comment"), {"body": "Hello"})

    assert response.status_code == 403
    assert "O formulário expirou" in texts(response)
    assert nothing_written()


def test_a_wrong_role_gets_a_page_in_the_language_of_the_user(as_user, customer, ticket):
    customer.language = "pt-br"
    customer.save()

    response = as_user(customer).post(page(ticket, "status"), {"status": "resolved"})

    assert "Não permitido" in texts(response)


@pytest.mark.parametrize(("template", "title"), [("400.html", "Bad request"), ("500.html", "Something went wrong")])
def test_the_page_of_a_fault_needs_nothing(template, title):
    assert title in render_to_string(template)


def test_a_form_of_three_megabytes_is_refused(as_user, customer, ticket):
    response = as_user(customer).post(page(ticket, "comment"), {"body": "x" * 3_000_000})

    assert response.status_code == 400
    assert nothing_written()
