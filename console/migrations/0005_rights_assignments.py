"""Roles become assignments to users and groups, with scopes."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


ROLES = ("viewer", "support", "analyst", "operator", "admin", "client", "monitor")


def assign(apps, schema_editor):
    """A group for each role; whoever is in it has the role everywhere, as it was before there were scopes."""
    Group, Assignment = apps.get_model("auth", "Group"), apps.get_model("console", "Assignment")
    for name in ROLES:
        group, _ = Group.objects.get_or_create(name=name)
        Assignment.objects.create(group=group, role=name)


class Migration(migrations.Migration):

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('console', '0004_clients'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Assignment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(max_length=16)),
                ('scopes', models.JSONField(default=list)),
                ('extras', models.JSONField(default=list)),
                ('group', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='assignments', to='auth.group')),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='assignments', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['id'],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('group__isnull', True), ('user__isnull', False)), models.Q(('group__isnull', False), ('user__isnull', True)), _connector='OR'), name='assignment_has_one_holder')],
            },
        ),
        migrations.RunPython(assign, migrations.RunPython.noop),
    ]
