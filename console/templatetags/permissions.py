"""Check permissions in templates, and disable controls that the reader may not use."""

from __future__ import annotations

import re
from typing import Any

from django import template
from django.template.base import FilterExpression, NodeList, Parser, Token
from django.template.defaulttags import token_kwargs
from django.utils.html import format_html

from console.access.permissions import Permission, has_permission, permission_message

register = template.Library()

#: A control that is small: what stands in its place is as small.
_SMALL = re.compile(r'class="[^"]*\bbutton-small\b')


@register.simple_tag(takes_context=True, name="may")
def may_tag(context: template.Context, permission: str, destination: Any = None) -> bool:
    """{% may "remove" destination as ok %}: return whether the reader has the permission."""
    return has_permission(context["user"], Permission[permission.upper()], destination)


class RightNode(template.Node):
    """Render the block of `right`."""

    def __init__(
        self, nodelist: NodeList, permission: FilterExpression, of: FilterExpression | None, label: Any
    ) -> None:
        self.nodelist, self._permission, self._of, self._label = nodelist, permission, of, label

    def render(self, context: template.Context) -> str:
        """Return the control; disabled with the reason; or nothing."""
        permission = Permission[self._permission.resolve(context).upper()]
        destination = (self._of.resolve(context) or None) if self._of else None
        if has_permission(context["user"], permission, destination):
            return self.nodelist.render(context)
        if not self._label:
            return ""
        reason = permission_message(permission, destination if has_permission(context["user"], permission) else None)
        return format_html(
            '<button type="button" class="button{}" aria-disabled="true" title="{}">{}</button>',
            " button-small" if _SMALL.search(self.nodelist.render(context)) else "",
            reason,
            self._label.resolve(context),
        )


@register.tag
def right(parser: Parser, token: Token) -> RightNode:
    """{% right "remove" destination label="Purge" %}<a ...>Purge</a>{% endright %}

    Shows the control to whoever has the right (for the destination, where one is given). Others see a button with the
    label, out of use, that names the missing right; without a label they see nothing.
    """
    _, *bits = token.split_contents()
    kwargs = token_kwargs(bits[-1:], parser) if "=" in bits[-1] else {}
    if kwargs:
        bits.pop()
    if not 1 <= len(bits) <= 2 or set(kwargs) - {"label"}:
        raise template.TemplateSyntaxError('say {% right "permission" [destination] [label="..."] %}')
    permission, of = parser.compile_filter(bits[0]), parser.compile_filter(bits[1]) if len(bits) == 2 else None
    nodelist = parser.parse(("endright",))
    parser.delete_first_token()
    return RightNode(nodelist, permission, of, kwargs.get("label"))
