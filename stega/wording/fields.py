"""What people type: text that shows, in one line or in several. The same rule for every form and the admin."""

import uuid
from typing import Any

from django import forms
from django.db import models

from stega.wording.text import is_invisible, one_line


class _VisibleField(forms.CharField):
    def to_python(self, value: Any) -> str:
        """Nothing for what shows nothing: a required field says so, an optional one stays empty."""
        text = super().to_python(value) or ""
        return "" if is_invisible(text) else text


class LineField(_VisibleField):
    """One line: every run of white space becomes a blank, and nothing turns the order of what follows."""

    def to_python(self, value: Any) -> str:
        return one_line(super().to_python(value))


class TextField(_VisibleField):
    """Text of several lines, each ended by a line feed whatever the browser sends: a line end counts once."""

    widget = forms.Textarea

    def to_python(self, value: Any) -> str:
        return super().to_python(value.replace("\r\n", "\n") if isinstance(value, str) else value)


class OnceField(forms.UUIDField):
    """Names one filling-in of a form, hidden in it: sent twice, as by a double click, it is one request.

    The browser is told not to fill in what it remembers of an earlier one.
    """

    def __init__(self, **options: Any) -> None:
        hidden = forms.HiddenInput(attrs={"autocomplete": "off"})
        super().__init__(widget=hidden, initial=uuid.uuid4, **options)


class Line(models.CharField):  # type: ignore[type-arg]  # not generic at run time
    """A column that every model form asks for with a LineField; to the database a CharField."""

    def formfield(self, **options: Any) -> Any:
        return super().formfield(**{"form_class": LineField, **options})

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs


class Text(models.TextField):  # type: ignore[type-arg]  # not generic at run time
    """A column that every model form asks for with a TextField; to the database a TextField."""

    def formfield(self, **options: Any) -> Any:
        return super().formfield(**{"form_class": TextField, **options})

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.TextField", args, kwargs
