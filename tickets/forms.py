from collections.abc import Iterable
from typing import Any

from django import forms
from django.forms.models import ModelChoiceIterator
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from accounts.roles import Role
from stega.wording.fields import LineField, OnceField, TextField
from tickets import policy
from tickets.models import BODY_LENGTH, TITLE_LENGTH, Product, TicketQuerySet
from tickets.sla import Priority
from tickets.workflow import Status

STATUS_CHOICES = [(status.value, status.label) for status in Status]
PRIORITY_CHOICES = [(priority.value, priority.label) for priority in reversed(Priority)]
CHOOSE = ("", _("Choose…"))
"""Chosen first, and refused: a stray click on the button changes nothing."""


UPDATED, DEADLINE, OPENED = "updated", "deadline", "opened"
SORT_CHOICES = [(UPDATED, _("Latest change")), (DEADLINE, _("SLA deadline")), (OPENED, _("Opening"))]


class _ActiveProducts(ModelChoiceIterator):  # type: ignore[type-arg]  # generic in its stubs alone
    def __init__(self, field: Any) -> None:
        super().__init__(field)
        self.queryset = self.queryset.filter(is_active=True)


class ProductField(forms.ModelChoiceField):  # type: ignore[type-arg]
    """Offers the active ones and takes all: whether one takes tickets is decided when the ticket is opened.

    A form that is sent again says what it said, also when the product was retired meanwhile.
    """

    iterator = _ActiveProducts


class TicketForm(forms.Form):
    product = ProductField(label=_("Product"), queryset=Product.objects.all(), empty_label=_("Choose a product"))
    title = LineField(label=_("Title"), max_length=TITLE_LENGTH, help_text=_("What is wrong, in a few words."))
    body = TextField(
        label=_("Description"),
        max_length=BODY_LENGTH,
        widget=forms.Textarea(attrs={"rows": 10}),
        help_text=_("What you did, what you expected and what happened instead. Versions help."),
    )
    priority = forms.ChoiceField(label=_("Priority"), choices=PRIORITY_CHOICES, initial=Priority.MEDIUM.value)
    form_key = OnceField(required=False)


class CommentForm(forms.Form):
    body = TextField(label=_("Comment"), max_length=BODY_LENGTH, widget=forms.Textarea(attrs={"rows": 5}))
    is_internal = forms.BooleanField(
        label=_("Internal"), required=False, help_text=_("Only agents and admins see an internal comment.")
    )
    form_key = OnceField(required=False)

    def __init__(self, data: Any = None, *, may_be_internal: bool) -> None:
        super().__init__(data)
        self.may_be_internal = may_be_internal


class StatusForm(forms.Form):
    """Choose a status other than the present one; nothing is chosen yet."""

    status = forms.ChoiceField(label=_("New status"))

    def __init__(self, data: Any = None, *, offered: Iterable[Status] = Status) -> None:
        super().__init__(data)
        _field(self, "status").choices = [CHOOSE, *((status.value, status.label) for status in offered)]


class PriorityForm(forms.Form):
    """Choose a priority other than the present one; nothing is chosen yet."""

    priority = forms.ChoiceField(label=_("New priority"))

    def __init__(self, data: Any = None, *, present: str = "") -> None:
        super().__init__(data)
        offered = [(value, label) for value, label in PRIORITY_CHOICES if value != present]
        _field(self, "priority").choices = [CHOOSE, *offered]


class AssigneeForm(forms.Form):
    """Choose among the active agents other than the present assignee, or nobody; nothing is chosen yet."""

    NOBODY = "nobody"

    assignee = forms.ChoiceField(label=_("New assignee"))

    def __init__(self, data: Any = None, *, present: int | None = None, may_be_nobody: bool = True) -> None:
        super().__init__(data)
        agents = User.objects.filter(role=Role.AGENT, is_active=True).order_by("display_name", "pk")
        self.agents = {str(agent.pk): agent for agent in agents if agent.pk != present}
        nobody = [(self.NOBODY, _("Nobody"))] if may_be_nobody else []
        offered = [(value, str(agent)) for value, agent in self.agents.items()]
        _field(self, "assignee").choices = [CHOOSE, *nobody, *offered]

    def clean_assignee(self) -> User | None:
        return self.agents.get(self.cleaned_data["assignee"])


def _field(form: forms.Form, name: str) -> forms.ChoiceField:
    field = form.fields[name]
    assert isinstance(field, forms.ChoiceField)
    return field


class FilterForm(forms.Form):
    """The filters of the list. A value that makes no sense is shown as an error and filters nothing."""

    MINE = "me"
    NOBODY = "nobody"

    q = LineField(label=_("Search in titles"), max_length=TITLE_LENGTH, required=False)
    status = forms.ChoiceField(label=_("Status"), choices=[("", _("Any")), *STATUS_CHOICES], required=False)
    priority = forms.ChoiceField(label=_("Priority"), choices=[("", _("Any")), *PRIORITY_CHOICES], required=False)
    product = forms.ModelChoiceField(
        label=_("Product"), queryset=Product.objects.all(), required=False, empty_label=_("Any")
    )
    assigned = forms.ChoiceField(
        label=_("Assigned to"), choices=[("", _("Anybody")), (MINE, _("Me")), (NOBODY, _("Nobody"))], required=False
    )

    sort = forms.ChoiceField(label=_("Sort by"), choices=SORT_CHOICES, required=False)

    def __init__(self, data: Any, *, user: User) -> None:
        super().__init__({"sort": DEADLINE if policy.is_staff(user) else UPDATED, **data.dict()})
        self.user = user
        if not policy.is_staff(user):
            del self.fields["assigned"]

    def apply(self, tickets: TicketQuerySet) -> TicketQuerySet:
        self.full_clean()
        value = self.cleaned_data.get
        lookups = {"title__icontains": "q", "status": "status", "priority": "priority", "product": "product"}
        tickets = tickets.filter(**{lookup: value(name) for lookup, name in lookups.items() if value(name)})
        if value("assigned") == self.MINE:
            tickets = tickets.filter(assignee=self.user)
        elif value("assigned") == self.NOBODY:
            tickets = tickets.filter(assignee=None)
        return self._sorted(tickets)

    def _sorted(self, tickets: TicketQuerySet) -> TicketQuerySet:
        sort = self.cleaned_data.get("sort")
        if sort == DEADLINE:
            return tickets.by_deadline()
        return tickets.order_by("-created_at" if sort == OPENED else "-updated_at", "-pk")
