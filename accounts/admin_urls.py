"""The address at which the admin would take passwords itself; comes before the admin's own."""

from django.urls import path

from accounts import views

urlpatterns = [path("admin/login/", views.admin_sign_in)]
