from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import Role, User
from notifications import actions
from notifications.kinds import Kind
from notifications.models import UnwantedKind


def offered_to(user: User) -> list[Kind]:
    """The kinds of mail that a person of this role ever gets."""
    if user.role == Role.CUSTOMER:
        return [Kind.STATUS, Kind.COMMENT]
    return [kind for kind in Kind if kind != Kind.REPORT or user.role == Role.ADMIN]


class KindsForm(forms.Form):
    kinds = forms.MultipleChoiceField(label=_("Write to me about"), required=False, widget=forms.CheckboxSelectMultiple)

    def __init__(self, data: Any = None, *, user: User) -> None:
        self.user = user
        self.offered = offered_to(user)
        unwanted = set(UnwantedKind.objects.filter(user=user).values_list("kind", flat=True))
        super().__init__(data, initial={"kinds": [kind.value for kind in self.offered if kind not in unwanted]})
        field = self.fields["kinds"]
        assert isinstance(field, forms.MultipleChoiceField)
        field.choices = [(kind.value, kind.label) for kind in self.offered]

    def save(self) -> None:
        actions.choose_kinds(self.user, self.cleaned_data["kinds"], [kind.value for kind in self.offered])
