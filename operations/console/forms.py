from django import forms
from django.utils.translation import gettext_lazy as _

from operations.models import REASON_LENGTH
from stega.wording.fields import OnceField, TextField


class ConfirmationForm(forms.Form):
    """Why, and which question it is that was answered."""

    reason = TextField(
        label=_("Reason"),
        max_length=REASON_LENGTH,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("For whoever reads the record later: what was wrong, what has been mended."),
    )
    key = OnceField()
    up_to = forms.IntegerField(widget=forms.HiddenInput, required=False, min_value=0, max_value=2**63 - 1)
