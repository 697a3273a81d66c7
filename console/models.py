"""Import the models of all features: Django looks for them in this module."""

from console.access.models import Assignment, MaskingRule, RightsVersion
from console.accounts.models import ApiToken
from console.alerts.delivery.models import AlertDelivery, AlertFiring, AlertRule
from console.analyses.models import AnalysisRun
from console.analyses.reports.models import Edition, Report
from console.analyses.sql.models import SavedQuery
from console.audit.models import AuditEntry
from console.backups.records.models import BackupRun, BackupSchedule
from console.messages.jobs.models import Job, JobOutcome, Replacement, SavedSelector, Template
from console.messages.search.models import MessageSearch, SearchHit
from console.objectives.models import Objective
from console.routing.drafts.models import Draft, DraftRemark
from console.traffic_ranges.models import TrafficRange
from console.ui.preferences.models import SavedView, Star, UserSetting
from console.upgrades.models import UsedVersion

__all__ = [
    "AlertDelivery",
    "AlertFiring",
    "AlertRule",
    "AnalysisRun",
    "ApiToken",
    "Assignment",
    "AuditEntry",
    "BackupRun",
    "BackupSchedule",
    "Draft",
    "DraftRemark",
    "Edition",
    "Job",
    "JobOutcome",
    "MaskingRule",
    "MessageSearch",
    "Objective",
    "Replacement",
    "Report",
    "RightsVersion",
    "SavedQuery",
    "SavedSelector",
    "SavedView",
    "SearchHit",
    "Star",
    "Template",
    "TrafficRange",
    "UsedVersion",
    "UserSetting",
]
