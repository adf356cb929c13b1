from django import forms
from django.conf import settings
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.models import User, language_choices, time_zone_choices
from stega.wording.fields import LineField


def profile_time_zones() -> list[tuple[str, str]]:
    return [("", gettext("As the site: %(zone)s") % {"zone": settings.TIME_ZONE}), *time_zone_choices()]


class ProfileForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    display_name = LineField(label=_("Display name"), max_length=150, help_text=_("How others see you."))
    language = forms.ChoiceField(
        label=_("Language"), choices=language_choices, help_text=_("Of the pages and of the mail you get.")
    )
    time_zone = forms.ChoiceField(label=_("Time zone"), choices=profile_time_zones, required=False)

    class Meta:
        model = User
        fields = ["display_name", "language", "time_zone"]
