"""REST API of objectives."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from brokerapp.errors import RequestRefused
from console.access.roles import Permission
from console.api.common.inputs import RequestBody
from console.api.common.operations import operation
from console.objectives import objective_changes
from console.objectives.attainment import measure
from console.objectives.forms import ObjectiveForm
from console.objectives.models import Objective

router = Router(tags=["objectives"])


class ObjectiveIn(RequestBody):
    """The share of messages that is to be acknowledged in time."""

    name: str
    kind: Literal["queue", "subscription"] = Field("queue", description="Queues, or durable subscriptions")
    pattern: str = Field(description="Queues, such as orders.>, or the topics of subscriptions, such as prices.>")
    subscription: str = Field("", description="Only this durable subscription, as client-id:name; empty: all")
    percent: float = Field(95, description="Share of messages to be acknowledged in time")
    seconds: int = Field(30, description="Time from arrival at the broker to the acknowledgement")
    days: int = Field(7, description="Length of the period, which ends now")


class AttainmentOut(Schema):
    """What was measured over the period. Shares are null without messages."""

    queues: int = Field(description="Queues that count; 0 for an objective of subscriptions")
    subscriptions: int = Field(description="Durable subscriptions that count; 0 for an objective of queues")
    within: int = Field(description="Messages acknowledged in time")
    late: int = Field(description="Messages acknowledged later")
    failed: int = Field(description="Messages dead-lettered, expired or dropped")
    overdue: int = Field(description="Messages not acknowledged yet and late, at least")
    attainment: float | None = Field(description="Share of messages in time, 0 to 1")
    budget_left: float | None = Field(description="Share of the error budget that is left; below 0 if exceeded")
    is_met: bool | None
    burn_rates: dict[str, float] = Field(description="By the length of the time range in seconds")


class ObjectiveOut(Schema):
    """An objective with its attainment."""

    id: int
    name: str
    kind: str
    pattern: str
    subscription: str
    percent: float
    seconds: int
    days: int
    author: str
    sentence: str = Field(description="The objective as text")
    measured: AttainmentOut

    @staticmethod
    def resolve_sentence(objective: Objective) -> str:
        """Describe the objective in a sentence."""
        return str(objective.target)

    @staticmethod
    def resolve_measured(objective: Objective) -> dict[str, Any]:
        """Measure the objective."""
        found = measure(objective.target)
        counts = {name: getattr(found.outcomes, name) for name in ("within", "late", "failed", "overdue")}
        of_subscriptions = found.target.of_subscriptions
        return {
            "queues": 0 if of_subscriptions else found.counted,
            "subscriptions": found.counted if of_subscriptions else 0, **counts,
            "attainment": found.attainment, "budget_left": found.budget_left,
            "is_met": found.is_met, "burn_rates": {str(each): rate for each, rate in found.burn_rates.items()},
        }  # fmt: skip


@operation(router, "GET", "", Permission.SEE, response=list[ObjectiveOut])
def list_objectives(request: HttpRequest) -> Any:
    """List the objectives whose queues or topics are all visible, by name."""
    return objective_changes.visible_objectives(request)


@operation(router, "POST", "", Permission.ALERT, response={201: ObjectiveOut})
def create_objective(request: HttpRequest, wanted: ObjectiveIn) -> Any:
    """Create an objective."""
    return Status(201, _saved(request, wanted, None))


@operation(router, "GET", "/{int:objective_id}", Permission.SEE, response=ObjectiveOut)
def get_objective(request: HttpRequest, objective_id: int) -> Any:
    """Return an objective with its attainment."""
    return objective_changes.get_visible(request, objective_id)


@operation(router, "PUT", "/{int:objective_id}", Permission.ALERT, response=ObjectiveOut)
def change_objective(request: HttpRequest, objective_id: int, wanted: ObjectiveIn) -> Any:
    """Change an objective."""
    return _saved(request, wanted, objective_changes.get_editable(request, objective_id))


@operation(router, "DELETE", "/{int:objective_id}", Permission.ALERT, response={204: None})
def delete_objective(request: HttpRequest, objective_id: int) -> Any:
    """Delete an objective."""
    objective_changes.delete(request, objective_changes.get_editable(request, objective_id))
    return Status(204, None)


def _saved(request: HttpRequest, wanted: ObjectiveIn, row: Objective | None) -> Objective:
    form = ObjectiveForm(wanted.model_dump(), instance=row)
    if not form.is_valid():
        raise RequestRefused("; ".join(f"{name}: {' '.join(map(str, why))}" for name, why in form.errors.items()))
    return objective_changes.save(request, form)
