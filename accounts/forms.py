from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import User


class ProfileForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    class Meta:
        model = User
        fields = ["display_name", "language", "time_zone"]

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.fields["display_name"].required = True
        self.fields["display_name"].help_text = _("How others see you.")
        self.fields["language"].required = True
        self.fields["language"].help_text = _("Of the pages and of the mail you get.")

    def clean_display_name(self) -> str:
        return " ".join(str(self.cleaned_data["display_name"]).split())
