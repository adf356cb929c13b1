"""The admin of the help desk. Tickets are read here and changed on their page, so that nothing bypasses the rules, the
history or the outbox.
"""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from stega.web.read_only import ReadOnly
from stega.wording import moments
from tickets.models import Comment, Product, Ticket, TicketEvent
from tickets.sla import Priority
from tickets.slack_webhook import masked, validate_slack_webhook_url


class ProductForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """Takes a new Slack webhook, and never gives the present one back."""

    new_slack_webhook_url = forms.CharField(
        label=_("New Slack webhook"),
        max_length=500,
        required=False,
        validators=[validate_slack_webhook_url],
        widget=forms.TextInput(attrs={"class": "vTextField", "autocomplete": "off"}),
        help_text=_("Leave it empty to keep the present one."),
    )
    removes_slack_webhook = forms.BooleanField(label=_("Remove the Slack webhook"), required=False)

    class Meta:
        model = Product
        fields = [
            "name",
            "slug",
            "description",
            "is_active",
            "sla_critical_minutes",
            "sla_high_minutes",
            "sla_medium_minutes",
            "sla_low_minutes",
        ]

    def save(self, commit: bool = True) -> Product:
        if self.cleaned_data["removes_slack_webhook"]:
            self.instance.slack_webhook_url = ""
        elif self.cleaned_data["new_slack_webhook_url"]:
            self.instance.slack_webhook_url = self.cleaned_data["new_slack_webhook_url"]
        product: Product = super().save(commit)
        return product


@admin.register(Product)
class ProductAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    form = ProductForm
    list_display = ["name", "slug", "is_active", "sla"]
    list_filter = ["is_active"]
    search_fields = ["name", "slug"]
    prepopulated_fields = {"slug": ["name"]}
    readonly_fields = ["present_slack_webhook", "created_at"]
    fieldsets = [
        (None, {"fields": ["name", "slug", "description", "is_active", "created_at"]}),
        (
            _("SLA"),
            {"fields": ["sla_critical_minutes", "sla_high_minutes", "sla_medium_minutes", "sla_low_minutes"]},
        ),
        (_("Slack"), {"fields": ["present_slack_webhook", "new_slack_webhook_url", "removes_slack_webhook"]}),
    ]

    def get_fieldsets(self, request: HttpRequest, obj: Product | None = None) -> Any:
        """What only a product that exists has is not asked about a new one."""
        if obj is not None:
            return self.fieldsets
        told = ("created_at", "present_slack_webhook", "removes_slack_webhook")
        return [
            (title, {"fields": [name for name in options["fields"] if name not in told]})
            for title, options in self.fieldsets
        ]

    @admin.display(description=_("SLA, critical to low"))
    def sla(self, product: Product) -> str:
        return " / ".join(moments.minutes(product.sla_policy[priority]) for priority in reversed(Priority))

    @admin.display(description=_("present Slack webhook"))
    def present_slack_webhook(self, product: Product) -> str:
        return masked(product.slack_webhook_url) or gettext("none")

    def has_delete_permission(self, request: HttpRequest, obj: Product | None = None) -> bool:
        """Products are deactivated: their tickets stay."""
        return False


class CommentInline(ReadOnly, admin.TabularInline):  # type: ignore[type-arg]  # not generic at run time
    model = Comment
    fields = readonly_fields = ("created_at", "author", "is_internal", "body")


class TicketEventInline(ReadOnly, admin.TabularInline):  # type: ignore[type-arg]  # not generic at run time
    model = TicketEvent
    fields = readonly_fields = ("created_at", "type", "actor", "payload")


@admin.register(Ticket)
class TicketAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    list_display = ["id", "title", "product", "status", "priority", "assignee", "sla_due_at", "sla_breached_at"]
    list_display_links = ["id", "title"]
    list_filter = ["status", "priority", "product"]
    list_select_related = ["product", "assignee"]
    search_fields = ["title", "author__username", "assignee__username"]
    date_hierarchy = "created_at"
    inlines = [CommentInline, TicketEventInline]

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("product", "author", "assignee")

    def render_change_form(self, request: Any, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """The way to the ticket's page is offered to whom the help desk shows it, whatever they may read here."""
        page: Any = super().render_change_form(request, context, *args, **kwargs)
        ticket = context["original"]
        page.context_data["has_absolute_url"] = Ticket.objects.visible_to(request.user).filter(pk=ticket.pk).exists()
        return page


@admin.register(Comment)
class CommentAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    list_display = ["id", "ticket", "author", "is_internal", "created_at"]
    list_filter = ["is_internal"]
    list_select_related = ["ticket", "author"]
    search_fields = ["body", "author__username"]


@admin.register(TicketEvent)
class TicketEventAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    list_display = ["id", "created_at", "ticket", "type", "actor"]
    list_filter = ["type"]
    list_select_related = ["ticket", "actor"]
    search_fields = ["=ticket__id", "actor__username"]
