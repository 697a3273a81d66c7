"""The table of checks of an installation with a console, after those of its broker."""

from __future__ import annotations

from brokerapp.checks.results import Check
from brokerapp.checks.table import BROKER_CHECKS
from console.checks import configuration, services

CONSOLE, SECURITY = "Console", "Addresses and files"

INSTALLATION_CHECKS: tuple[Check, ...] = (
    *BROKER_CHECKS,
    Check("console.database", CONSOLE, "Database", services.measure_database, services.judge_database),
    Check("console.workers", CONSOLE, "Workers", services.measure_workers, services.judge_workers),
    Check("console.spark", CONSOLE, "Java and Spark", services.measure_spark, services.judge_spark),
    Check("console.mail", CONSOLE, "Mail server", services.measure_mail, services.judge_mail),
    Check("console.archive", CONSOLE, "Archive", configuration.measure_files, configuration.judge_archive),
    Check("console.backups", CONSOLE, "Backup folder", configuration.measure_files, configuration.judge_backups),
    Check("console.zones", CONSOLE, "Time zones", configuration.measure_time_zones, configuration.judge_time_zones),
    Check("files.secrets", SECURITY, "Secrets", configuration.measure_files, configuration.judge_secrets),
    Check("addresses", SECURITY, "Addresses", configuration.measure_addresses, configuration.judge_addresses),
)
