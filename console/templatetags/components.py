"""Provide the components that pages share: cards, form rows, table heads, empty states and error notes."""

from __future__ import annotations

from django import template
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

register = template.Library()


def _render(component: str, **context: object) -> SafeString:
    return SafeString(render_to_string(f"components/{component}.html", context).strip())


@register.simple_block_tag
def card(content: str, title: str, id: str, note: str = "", badge: str = "", css: str = "") -> SafeString:
    """{% card "Sessions" id="sessions-title" %}...{% endcard %}

    Render a section with a heading; `id` is the heading's. `note` is a short text beside the heading, `badge` a status
    word there, in the color of `css` (such as `badge-good`).
    """
    return _render("card", content=content, title=title, id=id, note=note, badge=badge, css=css)


@register.simple_block_tag
def form_row(content: str, label: str, id: str, hint: str = "", help: str = "", css: str = "") -> SafeString:
    """{% form_row "Name" id="name" hint="optional" help="1 to 100 characters." %}<input id="name" ...>{% endform_row %}

    Render a control with its label above and its help below.
    """
    return _render("form_row", content=content, label=label, id=id, hint=hint, help=help, css=css)


@register.simple_block_tag
def empty_state(content: str, icon: str, title: str, url: str = "", action: str = "") -> SafeString:
    """{% empty_state "filter" "No matching users" url="?" action="Show all" %}One sentence.{% endempty_state %}

    Render what a page shows in place of an empty list: a title, one sentence, and at most one button.
    """
    return _render("empty_state", content=content, icon=icon, title=title, url=url, action=action)


@register.simple_tag
def table_head(*labels: str) -> SafeString:
    """{% table_head "Group" "Roles" "#Members" "-Actions" %}

    Render the head of a table. `#` marks a column of numbers, `-` a label for screen readers only.
    """
    return _render("table_head", columns=[(label.lstrip("#-"), label[0]) for label in labels])


@register.inclusion_tag("components/error_note.html")
def error_note(text: object) -> dict[str, object]:
    """{% error_note error %}: render an error above a form; nothing where there is none."""
    return {"text": text}


@register.simple_tag(takes_context=True)
def tab_link(context: template.Context, page: str, label: str) -> SafeString:
    """{% tab_link "users" "Users" %}: render the link to a page as a tab, marked where it is the current page."""
    url = reverse(page)
    current = mark_safe(' aria-current="page"') if context["request"].path == url else ""
    return format_html('<a class="chip" href="{}"{}>{}</a>', url, current, label)


@register.inclusion_tag("accounts/permission_cell.html")
def permission_cell(label: str, state: str) -> dict[str, str]:
    """{% permission_cell "viewer" "masked" %}: render a cell with a permission: yes, masked, extra or no."""
    return {"label": label, "state": state}
