from django.urls import path

from notifications import views

app_name = "notifications"
urlpatterns = [
    path("", views.choices, name="choices"),
    path("tickets/<int:ticket_id>/mute/", views.mute, name="mute"),
    path("tickets/<int:ticket_id>/unmute/", views.unmute, name="unmute"),
]
