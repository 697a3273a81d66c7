"""Render a confirmation dialog before an action that cannot be undone."""

from __future__ import annotations

from binascii import crc32

from django import template
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_block_tag(takes_context=True)
def confirm(
    context: template.Context,
    content: str,
    label: str,
    url: str,
    about: object,
    button: str = "",
    name: str = "",
    value: object = "",
    typed: str = "",
    css: str = "button button-danger",
) -> SafeString:
    """{% confirm label="Delete" url=url about=rule.name %}Its alerts end.{% endconfirm %}

    A button that opens a question, which stands above everything: `label` and what it is about, the content as words
    about what is lost, and the button that posts to `url` (with `name`=`value`). Where `typed` is given, it must be
    typed first; whoever answers the post has to check that too.
    """
    shown = {
        "id": f"confirm-{crc32(f'{url} {name} {value}'.encode()):x}", "content": content, "label": label, "url": url,
        "title": f"{button or label} {about}?", "button": button or label, "name": name, "value": value,
        "typed": typed, "css": css, "csrf_token": context.get("csrf_token", ""),
    }  # fmt: skip
    return SafeString(render_to_string("components/confirmation.html", shown))
