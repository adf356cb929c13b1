from django.urls import path

from notifications import inbox_views

app_name = "inbox"
urlpatterns = [
    path("", inbox_views.inbox, name="inbox"),
    path("slack/", inbox_views.receive_post, name="slack"),
]
