"""Serve Jolokia: JMX as JSON over HTTP, protocol 8.2; one request, one document, errors included.

What a request may be told apart from, pure: reading and executing are functions over `Beans`, the carrier (GET path,
POST body) is the view's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from brokerapp.errors import BrokerError, StoreUnavailable
from console.exporters.jolokia.attributes import KINDS, VERSION
from console.exporters.jolokia.beans import Bean, Beans
from console.exporters.jolokia.errors import DENIED, ILLEGAL, NO_SUCH_ATTRIBUTE, NO_SUCH_BEAN, BadRequest, JolokiaError
from console.exporters.jolokia.object_names import DOMAIN, MalformedName, NamePattern, listed
from console.exporters.jolokia.operations import OPERATIONS
from console.exporters.jolokia.request_path import split_decoded
from console.exporters.jolokia.values import MissingPath, ValueFormat, plain_value, value_at_path

#: Beans that one `list` describes in full: some 8 KB each.
MAX_DESCRIBED = 1_000

AGENT, PROTOCOL = "2.6.1", "8.2"
#: Parameters that change an answer; the others that clients send have no meaning here.
FLAGS = ("ignoreErrors", "canonicalNaming", "includeStackTrace", "includeRequest", "listKeys")


@dataclass(slots=True)
class JolokiaRequest:
    """Represent a request; `echo` is what its answer repeats."""

    type: str
    echo: dict[str, Any]
    mbean: str = ""
    attribute: str | list[str] | None = None
    path: list[str] = field(default_factory=list)
    operation: str = ""
    arguments: list[Any] = field(default_factory=list)
    options: Mapping[str, Any] = field(default_factory=dict)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a boolean option."""
        value = self.options.get(name)
        return default if value is None else str(value).lower() == "true"


# -- carriers


def request_from_path(parts: Sequence[str], options: Mapping[str, Any]) -> JolokiaRequest:
    """Parse the path of a GET request. Raises BadRequest."""
    kind, *rest = parts or ["version"]
    echo: dict[str, Any] = {"type": kind}
    made = JolokiaRequest(kind, echo, options=options)
    match kind, rest:
        case "read", [mbean, *more]:
            echo["mbean"] = made.mbean = mbean
            if more:
                names = more[0].split(",")
                echo["attribute"] = made.attribute = names if len(names) > 1 else names[0]
            made.path = list(more[1:])
        case "search", [mbean]:
            echo["mbean"] = made.mbean = mbean
        case "list", path:
            made.path = path
        case "version", []:
            pass
        case "exec", [mbean, operation, *arguments]:
            echo |= {"mbean": mbean, "operation": operation, "arguments": arguments}
            made.mbean, made.operation, made.arguments = mbean, operation, arguments
        case "write", [_, *_]:
            echo["mbean"] = rest[0]
        case _:
            raise BadRequest(f"{'/'.join(parts)!r} is not a request: expected read, search, list, version or exec")
    if made.path:
        echo["path"] = "/".join(made.path)
    return made


def request_from_body(body: Any, options: Mapping[str, Any]) -> JolokiaRequest:
    """Parse an object of a POST body. Raises BadRequest."""
    if not isinstance(body, dict) or not isinstance(body.get("type"), str):
        raise BadRequest("a request must be an object with a type")
    echo = {name: value for name, value in body.items() if name not in ("config", "target")}
    attribute, path, arguments = body.get("attribute"), body.get("path") or "", body.get("arguments") or []
    config = body.get("config") or {}
    texts = [attribute] if isinstance(attribute, str) else attribute or []
    if not (
        isinstance(texts, list) and all(isinstance(each, str) for each in texts)
        and isinstance(path, str | list) and isinstance(arguments, list) and isinstance(config, dict)
        and isinstance(body.get("mbean", ""), str) and isinstance(body.get("operation", ""), str)
    ):  # fmt: skip
        raise BadRequest(
            "attribute is a text or a list of texts; path, mbean and operation are texts, config an object"
        )
    return JolokiaRequest(
        body["type"], echo, body.get("mbean", ""), attribute,
        split_decoded(path) if isinstance(path, str) else list(map(str, path)),
        body.get("operation", ""), arguments, {**options, **config},
    )  # fmt: skip


# -- answers


Execute = Callable[[Bean, str, Sequence[Any]], Any]


@dataclass(frozen=True, slots=True)
class JolokiaAgent:
    """Answer requests about these beans; `execute` runs an operation or raises JolokiaError."""

    beans: Beans
    execute: Execute

    def answer(self, request: JolokiaRequest) -> dict[str, Any]:
        """Return the document that answers one request."""
        document: dict[str, Any] = {"request": request.echo} if request.flag("includeRequest", default=True) else {}
        try:
            value = self._value(request)
        except JolokiaError as failure:
            failed = {"status": failure.status, "error": str(failure), "error_type": failure.error_type}
            return document | failed | {".error": True}
        except StoreUnavailable as error:
            return document | {"status": 500, "error": str(error), "error_type": DENIED, ".error": True}
        return document | {"value": value, "timestamp": int(self.beans.reading.at), "status": 200}

    def _value(self, request: JolokiaRequest) -> Any:
        verbs = {
            "read": self._read, "search": self._search, "list": self._list, "version": self._version,
            "exec": self._exec, "write": self._write,
        }  # fmt: skip
        verb = verbs.get(request.type)
        if verb is None:
            raise JolokiaError(403, DENIED, f"Command {request.type} is not allowed")
        try:
            return verb(request)
        except MalformedName as error:
            raise JolokiaError(400, "javax.management.MalformedObjectNameException", str(error)) from error
        except MissingPath as error:
            raise JolokiaError(404, ILLEGAL, str(error)) from error

    def _read(self, request: JolokiaRequest) -> Any:
        pattern = NamePattern.parse(request.mbean)
        shape = ValueFormat.of(request.options)
        wanted = _names(request.attribute)
        if pattern.is_pattern:
            value = self._read_many(pattern, wanted, request, shape)
        else:
            value = self._read_one(self._one(pattern), wanted, request, shape)
        return value_at_path(value, request.path)

    def _read_one(self, bean: Bean, wanted: list[str] | None, request: JolokiaRequest, shape: ValueFormat) -> Any:
        attributes = KINDS[bean.kind].attributes
        if isinstance(request.attribute, str) and request.attribute:
            if request.attribute not in attributes:
                raise _no_attribute(request.attribute)
            return self._attribute(bean, request.attribute, shape)
        values = {}
        for name in wanted if wanted is not None else attributes:
            if name in attributes:
                values[name] = self._attribute(bean, name, shape)
            elif not request.flag("ignoreErrors"):
                raise _no_attribute(name)
        return values

    def _read_many(
        self, pattern: NamePattern, wanted: list[str] | None, request: JolokiaRequest, shape: ValueFormat
    ) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        sorted_keys = request.flag("canonicalNaming", default=True)
        for bean in self.beans.find(pattern):
            attributes = KINDS[bean.kind].attributes
            names = [each for each in (wanted if wanted is not None else attributes) if each in attributes]
            if names:
                key = bean.name.canonical if sorted_keys else bean.name.created
                found[key] = {name: self._attribute(bean, name, shape) for name in names}
        if not found:
            raise JolokiaError(404, NO_SUCH_ATTRIBUTE, f"No matching attributes found in {pattern.text}")
        return found

    def _attribute(self, bean: Bean, name: str, shape: ValueFormat) -> Any:
        return plain_value(KINDS[bean.kind].attributes[name].value(bean.subject, self.beans), shape)

    def _one(self, pattern: NamePattern) -> Bean:
        bean = next(self.beans.find(pattern), None)
        if bean is None:
            raise JolokiaError(404, NO_SUCH_BEAN, pattern.text)
        return bean

    def _search(self, request: JolokiaRequest) -> list[str]:
        pattern = NamePattern.parse(request.mbean)
        sorted_keys = request.flag("canonicalNaming", default=True)
        return [each.name.canonical if sorted_keys else each.name.created for each in self.beans.find(pattern)]

    def _list(self, request: JolokiaRequest) -> Any:
        """Depth counts from where the path leads."""
        depth = ValueFormat.of(request.options).depth
        depth = depth and depth + len(request.path)
        if depth == 1:
            return {DOMAIN: 1}
        keys = request.path[1] if len(request.path) > 1 else ""
        one = bool(keys) and "*" not in keys
        found = list(self.beans.find(NamePattern.parse(f"{DOMAIN}:{keys if one else '*'}")))
        if depth != 2 and len(found) > MAX_DESCRIBED:
            raise JolokiaError(
                400, ILLEGAL, f"{len(found):,} beans exceed the maximum of {MAX_DESCRIBED:,} in one description: "
                "use maxDepth=2 to list names, or request one bean by its path",
            )  # fmt: skip
        beans = {listed(each.name.keys, canonical=True): 1 if depth == 2 else _described(each.kind) for each in found}
        return value_at_path({DOMAIN: beans}, request.path)

    def _version(self, request: JolokiaRequest) -> dict[str, Any]:
        return {
            "agent": AGENT,
            "protocol": PROTOCOL,
            "details": {
                "agent_version": AGENT, "agent_id": self.beans.real_name, "server_product": "activemq",
                "server_vendor": "Sluice", "server_version": VERSION, "secured": True,
            },
            "config": {"agentType": "servlet", "canonicalNaming": "true", "serializeLong": "number"},
            "info": {"product": "activemq", "vendor": "Sluice", "version": VERSION, "extraInfo": {"amqBroker": "true"}},
        }  # fmt: skip

    def _exec(self, request: JolokiaRequest) -> Any:
        pattern = NamePattern.parse(request.mbean)
        if pattern.is_pattern:
            raise JolokiaError(400, ILLEGAL, f"{request.mbean} is a pattern: operations are executed on one bean")
        bean = self._one(pattern)
        try:
            value = self.execute(bean, request.operation, request.arguments)
        except StoreUnavailable:
            raise
        except BrokerError as error:
            raise JolokiaError(500, "javax.management.MBeanException", str(error)) from error
        return value_at_path(plain_value(value, ValueFormat.of(request.options)), request.path)

    def _write(self, request: JolokiaRequest) -> Any:
        raise JolokiaError(403, DENIED, "Command write is not allowed")


def _names(attribute: str | list[str] | None) -> list[str] | None:
    """Return the requested attributes; None for all."""
    if not attribute:
        return None
    return [attribute] if isinstance(attribute, str) else attribute


def _no_attribute(name: str) -> JolokiaError:
    return JolokiaError(404, NO_SUCH_ATTRIBUTE, f"No such attribute: {name}")


def _described(kind: str) -> dict[str, Any]:
    """Return the description of a kind of bean for `list`."""
    described = KINDS[kind]
    attributes = {
        name: {"type": each.type, "desc": name, "rw": False, "r": True, "w": False, "is": each.type == "boolean"}
        for name, each in described.attributes.items()
    }
    document = {"attr": attributes, "class": described.java_class, "desc": described.description}
    operations: dict[str, Any] = {}
    for operation in OPERATIONS.get(kind, ()):
        said = operation.described()
        before = operations.get(operation.name)
        if before is None:
            operations[operation.name] = said
        else:
            operations[operation.name] = [*(before if isinstance(before, list) else [before]), said]
    return document | ({"op": operations} if operations else {})
