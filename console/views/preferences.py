"""What a user chooses for their own screen."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from console.models import UserSetting


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Keep the theme and go back to the page."""
    choice = request.POST.get("theme")
    if choice not in UserSetting.Theme.values:
        return HttpResponseBadRequest(f"{choice!r} is not one of {', '.join(UserSetting.Theme.values)}")
    UserSetting.objects.update_or_create(user=request.user, defaults={"theme": choice})
    back = request.POST.get("back", "/")
    return redirect(back if url_has_allowed_host_and_scheme(back, {request.get_host()}) else "/")
