from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from accounts.roles import Role
from tickets import policy
from tickets.models import BODY_LENGTH, TITLE_LENGTH, Product, TicketQuerySet
from tickets.sla import Priority
from tickets.workflow import Status

STATUS_CHOICES = [(status.value, status.label) for status in Status]
PRIORITY_CHOICES = [(priority.value, priority.label) for priority in reversed(Priority)]


class TextField(forms.CharField):
    """Text of several lines, each ended by a line feed whatever the browser sends: a line end counts once."""

    widget = forms.Textarea

    def to_python(self, value: Any) -> str:
        return super().to_python(value.replace("\r\n", "\n") if isinstance(value, str) else value) or ""


class TicketForm(forms.Form):
    product = forms.ModelChoiceField(
        label=_("Product"), queryset=Product.objects.filter(is_active=True), empty_label=_("Choose a product")
    )
    title = forms.CharField(label=_("Title"), max_length=TITLE_LENGTH, help_text=_("What is wrong, in a few words."))
    body = TextField(
        label=_("Description"),
        max_length=BODY_LENGTH,
        widget=forms.Textarea(attrs={"rows": 10}),
        help_text=_("What you did, what you expected and what happened instead. Versions help."),
    )
    priority = forms.ChoiceField(label=_("Priority"), choices=PRIORITY_CHOICES, initial=Priority.MEDIUM.value)

    def clean_title(self) -> str:
        return " ".join(str(self.cleaned_data["title"]).split())


class CommentForm(forms.Form):
    body = TextField(label=_("Comment"), max_length=BODY_LENGTH, widget=forms.Textarea(attrs={"rows": 5}))
    is_internal = forms.BooleanField(
        label=_("Internal"), required=False, help_text=_("Only agents and admins see an internal comment.")
    )

    def __init__(self, data: Any = None, *, may_be_internal: bool) -> None:
        super().__init__(data)
        if not may_be_internal:
            del self.fields["is_internal"]


class StatusForm(forms.Form):
    status = forms.ChoiceField(label=_("New status"), choices=STATUS_CHOICES)

    def __init__(self, data: Any = None, *, offered: list[Status] | None = None) -> None:
        super().__init__(data)
        if offered is not None:
            self.fields["status"] = forms.ChoiceField(
                label=_("New status"), choices=[(status.value, status.label) for status in offered]
            )


class PriorityForm(forms.Form):
    priority = forms.ChoiceField(label=_("New priority"), choices=PRIORITY_CHOICES)


class AssigneeForm(forms.Form):
    """Choose among the active agents, or nobody."""

    assignee = forms.ModelChoiceField(
        label=_("New assignee"),
        queryset=User.objects.filter(role=Role.AGENT, is_active=True).order_by("display_name", "pk"),
        required=False,
        empty_label=_("Nobody"),
    )

    def __init__(self, data: Any = None, *, initial: int | None = None, needs_somebody: bool = False) -> None:
        super().__init__(data, initial={"assignee": initial})
        if needs_somebody:
            self.fields["assignee"].required = True


class FilterForm(forms.Form):
    """The filters of the list. A value that makes no sense is shown as an error and filters nothing."""

    MINE = "me"
    NOBODY = "nobody"

    q = forms.CharField(label=_("Search in titles"), max_length=TITLE_LENGTH, required=False)
    status = forms.ChoiceField(label=_("Status"), choices=[("", _("Any")), *STATUS_CHOICES], required=False)
    priority = forms.ChoiceField(label=_("Priority"), choices=[("", _("Any")), *PRIORITY_CHOICES], required=False)
    product = forms.ModelChoiceField(
        label=_("Product"), queryset=Product.objects.all(), required=False, empty_label=_("Any")
    )
    assigned = forms.ChoiceField(
        label=_("Assigned to"), choices=[("", _("Anybody")), (MINE, _("Me")), (NOBODY, _("Nobody"))], required=False
    )

    def __init__(self, data: Any, *, user: User) -> None:
        super().__init__(data)
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
        return tickets
