"""Drafts of the routing, and what is said about them."""


import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("console", "0009_rights_masking"),
    ]

    operations = [
        migrations.CreateModel(
            name='Draft',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=120)),
                ('author', models.CharField(max_length=150)),
                ('changes', models.JSONField(default=list)),
                ('base_version', models.PositiveIntegerField()),
                ('revision', models.PositiveIntegerField(default=0)),
                ('state', models.CharField(choices=[('open', 'Open'), ('asked', 'Asked'), ('applied', 'Applied'), ('dropped', 'Dropped')], db_index=True, default='open', max_length=16)),
                ('applied_version', models.PositiveIntegerField(null=True)),
                ('decided_by', models.CharField(blank=True, max_length=150)),
                ('created', models.DateTimeField(auto_now_add=True)),
                ('changed', models.DateTimeField(auto_now=True)),
            ],
            options={
                'ordering': ['-changed', '-id'],
            },
        ),
        migrations.CreateModel(
            name='DraftRemark',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('author', models.CharField(max_length=150)),
                ('time', models.DateTimeField(auto_now_add=True)),
                ('what', models.CharField(max_length=32)),
                ('text', models.TextField(blank=True)),
                ('draft', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='remarks', to='console.draft')),
            ],
            options={
                'ordering': ['time', 'id'],
            },
        ),
    ]
