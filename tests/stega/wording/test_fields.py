"""One rule for what people type, in every form and in the admin."""

import pytest
from django.contrib.admin import site
from django.core.exceptions import ValidationError

from accounts.admin import UserAdmin
from accounts.forms import ProfileForm
from accounts.models import User
from stega.wording.fields import LineField, TextField
from tickets.admin import ProductAdmin
from tickets.forms import CommentForm, FilterForm, TicketForm
from tickets.models import Product

INVISIBLE = [
    pytest.param("", id="nothing"),
    pytest.param(" \t\r\n\u2028\u2029\u00a0\u3000", id="white space"),
    pytest.param("\u200b\u2060\ufeff\u00ad", id="zero width"),
    pytest.param("\u202e\u2066\u200f", id="direction"),
    pytest.param("\u3164\u115f\u2800\ufe0f", id="fillers"),
    pytest.param(" \u200b \u202e ", id="mixed"),
]
TYPED = [
    (TicketForm, "title", LineField),
    (TicketForm, "body", TextField),
    (FilterForm, "q", LineField),
    (CommentForm, "body", TextField),
    (ProfileForm, "display_name", LineField),
]


@pytest.mark.parametrize("field", [LineField(), TextField()], ids=["line", "text"])
@pytest.mark.parametrize("text", INVISIBLE)
def test_what_shows_nothing_is_empty(field, text):
    with pytest.raises(ValidationError, match="required"):
        field.clean(text)


@pytest.mark.parametrize("text", INVISIBLE)
def test_an_optional_line_that_shows_nothing_is_stored_empty(text):
    assert LineField(required=False).clean(text) == ""


@pytest.mark.parametrize("text", ["a", "é", "e\u0301", "日本", "👩\u200d🚀", "עברית", "می\u200cخواهم", "-", "0"])
def test_what_shows_something_is_kept_as_it_is(text):
    assert LineField().clean(text) == TextField().clean(text) == text


@pytest.mark.parametrize("override", "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
def test_a_line_never_turns_the_order_of_what_follows(override):
    assert LineField().clean(f"invoice{override}gpj.exe") == "invoicegpj.exe"


def test_a_line_is_one_line():
    assert LineField().clean(" Ana\r\n \u2028 Lima ") == "Ana Lima"


def test_a_line_is_measured_after_cleaning():
    assert LineField(max_length=5).clean("Ana \u202e   B") == "Ana B"


@pytest.mark.parametrize(("form", "name", "kind"), TYPED)
def test_every_form_asks_with_these_fields(form, name, kind):
    assert isinstance(form.base_fields[name], kind)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("model", "model_admin", "name"), [(Product, ProductAdmin, "name"), (User, UserAdmin, "display_name")]
)
def test_the_admin_asks_with_these_fields(rf, admin, model, model_admin, name):
    request = rf.get("/")
    request.user = admin

    assert isinstance(model_admin(model, site).get_form(request).base_fields[name], LineField)
