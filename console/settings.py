"""Configure Django; installation-specific values come from brokerapp.system.environment only."""

from __future__ import annotations

import hashlib
import os
import socket
from datetime import timedelta
from functools import partial

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from django.utils.functional import SimpleLazyObject

from brokerapp.engine.editing.operator_message import MAX_BODY
from brokerapp.errors import ConfigurationRefused
from brokerapp.store.client.pools import channel_layer_host
from brokerapp.system.data_directory import check_data_directory
from brokerapp.system.environment import PROJECT, Environment
from console.accounts import password_rules
from console.accounts.auth_settings import AuthSettings
from console.accounts.secret_key import KEY_FILE_NAME, secret_key, stored_key
from console.exporters.options import MonitorOptions
from console.ops.database_settings import databases
from console.ops.mail_settings import MailServer
from console.ui.assets import asset_folder
from console.ui.staticfiles import fingerprint

try:
    SLUICE = Environment.read()
    check_data_directory(SLUICE.data)
    SECRET_FILE = SLUICE.data / KEY_FILE_NAME
    DATABASES = databases(SLUICE.database_url)
    # Made by what uses it first: commands that need no data leave no folder behind.
    SECRET_KEY = SimpleLazyObject(partial(secret_key, SECRET_FILE))
    _key_of_cookies = stored_key(SECRET_FILE)
except ConfigurationRefused as error:  # Django reports this one as a sentence
    raise ImproperlyConfigured(str(error)) from error
IDENTITY = AuthSettings.read()
MONITOR = MonitorOptions.read()
BASE_DIR = PROJECT

DEBUG = False

# -- who may talk to it: this machine, and the names given in SLUICE_HOSTS (comma separated)

_named_hosts = [host.strip() for host in os.environ.get("SLUICE_HOSTS", "").split(",") if host.strip()]
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]", *_named_hosts]
CSRF_FAILURE_VIEW = "console.ui.views.error_pages.csrf_failure"
CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in _named_hosts if host != "*"]

INSTALLED_APPS = [
    "brokerapp.apps.BrokerAppConfig",
    "console",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "django_htmx",
    "django_celery_beat",
    "axes",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.mfa",
    "allauth.usersessions",
    "csp",
    "ninja",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "console.ui.staticfiles.StaticFilesMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "console.ui.partials.PartialsMiddleware",
    "csp.middleware.CSPMiddleware",
    "console.ui.error_middleware.BrokerErrorMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "console.accounts.second_factor.SecondFactorMiddleware",
    "console.accounts.impersonation.ImpersonationMiddleware",
    "console.ui.preferences.timezones.TimezoneMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "console.urls"
ASGI_APPLICATION = "console.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [asset_folder("templates")],
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "console.ui.context_processors.site_context",
            ],
            "loaders": [
                (
                    "django.template.loaders.cached.Loader",
                    ["django.template.loaders.filesystem.Loader", "django.template.loaders.app_directories.Loader"],
                )
            ],
            "builtins": [
                f"console.templatetags.{each}" for each in ("components", "confirmation", "common", "permissions")
            ],
        },
    }
]

# -- what the console keeps of its own

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [channel_layer_host(SLUICE.redis_url, "sluice:console")], "prefix": "sluice:console"},
    }
}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

# -- people

AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = password_rules.VALIDATORS
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "login"
SESSION_COOKIE_AGE = IDENTITY.session_hours * 60 * 60
# A browser keeps cookies by host, whatever the port: two installations on one machine would log each other's users out.
# All web processes of one installation have the same key, so the same names.
_installation = hashlib.sha256(f"cookies of {_key_of_cookies}".encode()).hexdigest()[:8]
# Where people find the console by TLS, their browsers never send its cookies without. To lead them there, and to have
# them remember it (HSTS), is for who has the certificate: a proxy, or the web process (console.ops.serving).
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SLUICE.console_tls or SLUICE.console_url.startswith("https://")
SECURE_HSTS_SECONDS = SLUICE.sent_hsts_seconds
# No other host of the domain can set a cookie of this prefix, which browsers take by TLS only.
_prefix = "__Host-" if SESSION_COOKIE_SECURE else ""
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = f"{_prefix}sluice_{_installation}", f"{_prefix}sluice_csrf_{_installation}"
SILENCED_SYSTEM_CHECKS = ["security.W004", "security.W008"]
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=10)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_TEMPLATE = "registration/locked.html"
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False

# The second factor, single sign-on and the list of sessions are allauth's; accounts are made by admins.
ACCOUNT_ADAPTER = "console.accounts.login.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
MFA_ADAPTER = "console.accounts.login.SecondFactorAdapter"
MFA_ALLOW_UNVERIFIED_EMAIL = True  # addresses are not asked for anything
MFA_TOTP_TOLERANCE = 1  # clocks of phones are half a minute off
SOCIALACCOUNT_ADAPTER = "console.accounts.oidc.SingleSignOnAdapter"
SOCIALACCOUNT_PROVIDERS = IDENTITY.providers
SOCIALACCOUNT_STORE_TOKENS = False

# -- mail: into files of the outbox, unless SLUICE_MAIL says by which server, as smtp://user:password@host:587?tls=1

_mail = MailServer.read()
EMAIL_BACKEND = (
    "django.core.mail.backends.smtp.EmailBackend" if _mail.host else "console.ops.file_mail_backend.EmailBackend"
)
EMAIL_FILE_PATH = SLUICE.data / "outbox"
#: The folder as pages name it; "" with a mail server.
MAIL_OUTBOX = "" if _mail.host else os.path.relpath(EMAIL_FILE_PATH, BASE_DIR)
if MAIL_OUTBOX.startswith(".."):  # elsewhere on the machine: that is said in full
    MAIL_OUTBOX = str(EMAIL_FILE_PATH)
EMAIL_HOST, EMAIL_PORT = _mail.host, _mail.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail.user, _mail.password
EMAIL_USE_SSL, EMAIL_USE_TLS = _mail.is_secure, _mail.becomes_secure
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = os.environ.get("SLUICE_MAIL_FROM", f"sluice@{socket.gethostname()}")

# -- static files: served by the process itself. Their URL carries a fingerprint of all of them, so that browsers may
# keep them for ever and modules may import each other by relative paths.

STATICFILES_DIRS = [asset_folder("static")]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "console.ui.staticfiles.PlotlyFinder",
]
STATIC_URL = f"/static/{fingerprint(STATICFILES_DIRS[0])}/"
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = os.environ.get("SLUICE_DEVELOP") == "1"
WHITENOISE_IMMUTABLE_FILE_TEST = r"^"
WHITENOISE_MAX_AGE = 0 if WHITENOISE_AUTOREFRESH else 365 * 24 * 60 * 60

# -- how much a request may hold

#: A form writes three characters for each byte that is not a letter, and JSON does so for most texts. asgi.py refuses
#: what is larger, files included, before it is read.
DATA_UPLOAD_MAX_MEMORY_SIZE = 3 * MAX_BODY + 1024 * 1024

# -- the browser's leash

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "font-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"

# -- time and words

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "console.ops.log_filters.OneLineFormatter"}},
    "filters": {
        "wrong host": {"()": "console.ops.log_filters.DisallowedHostFilter"},
        "invalid request": {"()": "console.ops.log_filters.InvalidRequestFilter"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django.request": {"level": "ERROR"},  # denials are in the audit trail, refusals on their page
        "django.security.DisallowedHost": {"level": "WARNING", "filters": ["wrong host"]},
        "axes": {"level": "WARNING"},
        "uvicorn.error": {"filters": ["invalid request"]},
    },
}
