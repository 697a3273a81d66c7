"""Reports take the place of schedules of single analyses; what was scheduled goes on as a report."""

import json

import django.db.models.deletion
from django.db import migrations, models
from django.utils import timezone

from console.analyses.reports.schedule import ReportSchedule

SCHEDULED = "console.start_scheduled"
LOOK = "Begin reports that are due, end those that are made, mail them"
HOURLY = "Traffic by destination, last hour, every hour, five minutes past"
FIRST = "Traffic of the hour"
FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")


def _owner(schedule):
    """Who made it: the first one was there from the start."""
    return schedule.removeprefix("schedule of ")[:150] if schedule.startswith("schedule of ") else ""


def move(apps, schema_editor):
    Report = apps.get_model("console", "Report")
    Interval = apps.get_model("django_celery_beat", "IntervalSchedule")
    Task = apps.get_model("django_celery_beat", "PeriodicTask")
    for task in Task.objects.filter(task=SCHEDULED).select_related("crontab"):
        kind, window = json.loads(task.args)[:2]
        cron, zone = " ".join(getattr(task.crontab, name) for name in FIELDS), str(task.crontab.timezone)
        Report.objects.create(
            name=FIRST if task.name == HOURLY else task.name[:80],
            questions=[{"kind": kind, "window": window}],
            cron=cron,
            zone=zone,
            is_on=task.enabled,
            due=next(ReportSchedule(cron, zone).after(timezone.now()), None) if task.enabled else None,
            owner=_owner(json.loads(task.kwargs).get("schedule", "")),
            keep_days=14,
        )
        task.delete()
    interval, _ = Interval.objects.get_or_create(every=15, period="seconds")
    defaults = {"task": "console.look_at_reports", "interval": interval, "queue": "default"}
    Task.objects.get_or_create(name=LOOK, defaults=defaults)


def back(apps, schema_editor):
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name=LOOK).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0015_analytics_runs"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]
    operations = [
        migrations.CreateModel(
            name='Edition',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('moment', models.DateTimeField()),
                ('asked_by', models.CharField(blank=True, max_length=150)),
                ('state', models.CharField(choices=[('running', 'Running'), ('done', 'Done'), ('failed', 'Failed'), ('skipped', 'Skipped')], default='running', max_length=8)),
                ('reason', models.TextField(blank=True)),
                ('parts', models.PositiveSmallIntegerField(default=0)),
                ('missed', models.PositiveIntegerField(default=0)),
                ('created', models.DateTimeField(auto_now_add=True)),
                ('finished', models.DateTimeField(null=True)),
                ('mail', models.CharField(blank=True, choices=[('', 'None'), ('due', 'Due'), ('sent', 'Sent'), ('failed', 'Failed')], default='', max_length=8)),
                ('mail_due', models.DateTimeField(null=True)),
                ('mail_attempts', models.PositiveSmallIntegerField(default=0)),
                ('mail_detail', models.TextField(blank=True)),
            ],
            options={
                'ordering': ['-moment', '-id'],
            },
        ),
        migrations.CreateModel(
            name='Report',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=80, unique=True)),
                ('questions', models.JSONField(default=list)),
                ('cron', models.CharField(blank=True, max_length=100)),
                ('zone', models.CharField(default='UTC', max_length=64)),
                ('is_on', models.BooleanField(default=True)),
                ('missed', models.CharField(choices=[('once', 'once'), ('all', 'all'), ('skip', 'skip')], default='once', max_length=8)),
                ('due', models.DateTimeField(db_index=True, null=True)),
                ('roles', models.JSONField(default=list)),
                ('addresses', models.CharField(blank=True, max_length=1000)),
                ('attach', models.BooleanField(default=True)),
                ('keep_days', models.PositiveIntegerField(default=90)),
                ('owner', models.CharField(max_length=150)),
                ('created', models.DateTimeField(auto_now_add=True)),
                ('changed', models.DateTimeField(auto_now=True)),
            ],
            options={
                'ordering': ['name'],
            },
        ),
        migrations.AddField(
            model_name='analysisrun',
            name='edition',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='runs', to='console.edition'),
        ),
        migrations.AddField(
            model_name='edition',
            name='report',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='editions', to='console.report'),
        ),
        migrations.AddIndex(
            model_name='edition',
            index=models.Index(fields=['state'], name='console_edi_state_1f1c00_idx'),
        ),
        migrations.AddIndex(
            model_name='edition',
            index=models.Index(fields=['mail', 'mail_due'], name='console_edi_mail_1e0c9a_idx'),
        ),
        migrations.RunPython(move, back),
    ]
