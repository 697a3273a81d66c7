"""How operations are declared: address, method, the right they need, and what that right is about."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.urls import reverse
from ninja import Router

from brokerapp.destination import Destination
from console.access import is_narrow, require
from console.login import is_proof_old
from console.rights import Verb

View = Callable[..., Any]
#: The right that each operation needs, by its id.
VERBS: dict[str, Verb] = {}


def operation(
    router: Router, method: str, path: str, verb: Verb, of: Callable[[dict[str, Any]], Destination] | None = None,
    **more: Any,
) -> Callable[[View], View]:  # fmt: skip
    """Declares a function to be an operation. `of` finds the destination the right must be had for, in its arguments.

    What changes users asks a browser for a recent proof of who one is, as its pages do; a token is its own proof.
    What it may do without a destination in its address, it asks for itself with `require`.
    """

    def declare(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            require(request, verb, of(kwargs) if of else None)
            if verb is Verb.USERS and method != "GET" and not is_narrow(request.user) and is_proof_old(request):
                raise PermissionDenied(f"Give your password again first, at {reverse('account_reauthenticate')}.")
            return view(request, *args, **kwargs)

        # What the wrapper is asked with is read from here: its own module knows none of the names in annotations.
        guarded.__signature__ = inspect.signature(view, eval_str=True)
        id = view.__name__
        assert id not in VERBS, f"two operations are called {id}"
        VERBS[id] = verb
        more.setdefault("summary", (view.__doc__ or "").strip().split("\n")[0].rstrip("."))
        more["description"] = f"Needs the right to {verb} (`{verb.name.lower()}`)."
        router.api_operation([method], path, operation_id=id, **more)(guarded)
        return guarded

    return declare
