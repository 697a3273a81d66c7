"""Decide what a user sees in the views of SQL statements: by roles with their scopes, and by masking rules.

A run gets its access when it is sent to a worker, from the roles of that moment: of whoever started it, or of the owner
of its report. What its token did not include stays out.
"""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth import get_user_model

from analytics.sql.access import DataAccess, PropertyMask
from brokerapp.engine.policy.broker_headers import CAUSE
from brokerapp.errors import RequestRefused
from console.access.masking import all_rules, browsing_roles
from console.access.masking_rules import DERIVED_HEADERS, NEVER_MASKED, MaskTarget, masks_header
from console.access.permissions import AnyUser, has_permission, scope_patterns
from console.access.roles import Permission
from console.analyses.models import AnalysisRun


def access_of(user: AnyUser) -> DataAccess:
    """Return what the views show this user. Raises RequestRefused without permission to write SQL."""
    if not has_permission(user, Permission.SQL):
        name = user.get_username() or "The user"
        raise RequestRefused(f"{name} no longer has the permission to {Permission.SQL}.")
    seen = (scope_patterns(user, permission) for permission in (Permission.SEE, Permission.SQL))
    browsed = scope_patterns(user, Permission.BROWSE)
    properties = None if browsed == () else () if browsed is None else (browsed,)
    # Whatever the scopes of rules, as for selectors: messages from there may be anywhere.
    roles = browsing_roles(user)
    rules = [each for each in all_rules() if each.place is MaskTarget.HEADER and each.role in (None, *roles)]
    masks = []
    for rule in rules:
        derived = [name for name, source in DERIVED_HEADERS.items() if masks_header(rule, source)]
        masks += [PropertyMask(name, rule.action, rule.replacement) for name in (rule.pattern, *derived)]
    return DataAccess(
        tuple(dict.fromkeys(each for each in seen if each is not None)),
        properties,
        tuple(dict.fromkeys(masks)),  # once each, as in the access of a run
        any(masks_header(rule, CAUSE) for rule in rules),
        tuple(sorted(NEVER_MASKED)),
    )


def access_at_start(run: AnalysisRun) -> DataAccess:
    """Return what a run may see that is sent now. Raises RequestRefused if its owner lost the permission."""
    now = access_of(owner_of(run))
    return now if run.access is None else now.both(DataAccess.from_json(run.access))


def owner_of(run: AnalysisRun) -> AnyUser:
    """Return the user with whose rights a run of SQL works. Raises RequestRefused if there is none any more."""
    name = run.edition.report.owner if run.edition is not None else run.asked_by
    found = get_user_model().objects.filter(username=name, is_active=True).first()
    if found is None:
        raise RequestRefused(f"{name or 'The owner'} has no active account.")
    return found


def readable_by(user: AnyUser) -> Callable[[AnalysisRun], bool]:
    """Return a predicate: which runs of SQL a user may read, those that saw nothing that the user may not see.

    Before a run of a report is sent it saw nothing; then those may know of it who see everything, and its owner.
    """
    if not has_permission(user, Permission.SQL):
        return lambda run: False
    access = access_of(user)
    if access.is_unrestricted:
        return lambda run: True
    name = user.get_username()
    return lambda run: run.asked_by == name if run.access is None else access.covers(DataAccess.from_json(run.access))


def sees_all(user: AnyUser) -> bool:
    """Return whether a user may read all runs of SQL."""
    return has_permission(user, Permission.SQL) and access_of(user).is_unrestricted
