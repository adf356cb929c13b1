"""The pages of the people who run Stega. The probes for machines are not here: `operations.probes` answers them."""

from django.urls import URLPattern, URLResolver

app_name = "operations"
urlpatterns: list[URLPattern | URLResolver] = []
