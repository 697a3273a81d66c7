"""Declare API operations: address, method, permission and the destination that it is about."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest
from ninja import Router

from console.access.roles import Permission
from console.api.common.auth import DestinationFromUrl, SessionPermission, TokenPermission
from console.api.common.inputs import parameters_of, refuse_unknown

View = Callable[..., Any]
#: The right that each operation needs, by its id.
OPERATION_PERMISSIONS: dict[str, Permission] = {}


def operation(
    router: Router, method: str, path: str, permission: Permission, of: DestinationFromUrl | None = None, **more: Any
) -> Callable[[View], View]:
    """Declare a function to be an operation; `of` finds the destination of the permission in its path.

    What it may do without a destination in its address, it asks for itself with `require`.
    """

    def declare(view: View) -> View:
        id = view.__name__
        assert id not in OPERATION_PERMISSIONS, f"two operations are called {id}"
        OPERATION_PERMISSIONS[id] = permission
        more.setdefault("summary", (view.__doc__ or "").strip().split("\n")[0].rstrip("."))
        more["description"] = f"Requires the permission `{permission.name.lower()}` ({permission})."
        auth = [TokenPermission(permission, of), SessionPermission(permission, of)]

        router.api_operation([method], path, operation_id=id, auth=auth, **more)(view)
        declared = (each for paths in router.path_operations.values() for each in paths.operations)
        found = next(each for each in declared if each.operation_id == id)
        found.view_func = _strict(view, parameters_of(found))
        return view

    return declare


def _strict(view: View, known: frozenset[str]) -> View:
    """Wrap a view so that it refuses unknown query parameters."""

    @wraps(view)
    def strict(request: HttpRequest, **arguments: Any) -> Any:
        refuse_unknown(request, known)
        return view(request, **arguments)

    return strict
