"""The version of Sluice: the one place that says it. The package, pages, protocols and metrics take it from here."""

#: By the rules of semantic versioning; CHANGELOG.md has what each version brought.
VERSION = "1.1.0"
#: What the server calls itself where a protocol asks for a product with its version.
PRODUCT = f"Sluice/{VERSION}"
