from django.urls import path
from django.views.generic import RedirectView

from tickets import views

app_name = "tickets"

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="tickets:list"), name="home"),
    path("tickets/", views.ticket_list, name="list"),
    path("tickets/new/", views.new_ticket, name="new"),
    path("tickets/<int:pk>/", views.detail, name="detail"),
    path("tickets/<int:pk>/comment/", views.comment, name="comment"),
    path("tickets/<int:pk>/take/", views.take, name="take"),
    path("tickets/<int:pk>/assign/", views.assign, name="assign"),
    path("tickets/<int:pk>/status/", views.change_status, name="status"),
    path("tickets/<int:pk>/priority/", views.change_priority, name="priority"),
]
