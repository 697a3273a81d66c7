"""Users, login, second factors, API tokens and impersonation."""
