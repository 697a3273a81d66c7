"""Test jaasAuthenticationPlugin with property files; an unreadable one denies all logins."""

import pytest

from brokerapp.config import Authentication, ImportOutcome, User, read_config
from brokerapp.config.reader import parse_config

PROPERTIES = """org.apache.activemq.jaas.PropertiesLoginModule {flag}
        org.apache.activemq.jaas.properties.user="users.properties" // beside this file
        org.apache.activemq.jaas.properties.group=groups.properties;"""
GUEST = """org.apache.activemq.jaas.GuestLoginModule sufficient {options}
        org.apache.activemq.jaas.guest.user="visitor" org.apache.activemq.jaas.guest.group="visitors";"""
USERS = (User("alice", "wonder", frozenset({"users", "admins"})), User("bob", "b", frozenset()))


def read(folder, login_config, plugin='<jaasAuthenticationPlugin configuration="sluice"/>'):
    (folder / "login.config").write_text(login_config)
    (folder / "users.properties").write_text("alice=wonder\nbob=b\n")
    (folder / "groups.properties").write_text("users=alice,carl\nadmins= alice \n")
    file = folder / "activemq.xml"
    file.write_text(f'<broker xmlns="http://activemq.apache.org/schema/core"><plugins>{plugin}</plugins></broker>')
    return read_config(file)


def entry(*modules):
    return "other { some.Module required; };\n/* ours */ sluice {\n" + "\n".join(modules) + "\n};\n"


@pytest.mark.parametrize("flag", ["required", "requisite", "sufficient"])
def test_users_and_groups_are_those_of_the_files(tmp_path, flag):
    config = read(tmp_path, entry("    " + PROPERTIES.format(flag=flag)))
    assert config.authentication == Authentication(USERS)


@pytest.mark.parametrize(
    ("modules", "outcome"),
    [
        ((PROPERTIES.format(flag="sufficient"), GUEST.format(options="")), ImportOutcome.ADAPTED),
        (
            (GUEST.format(options="credentialsInvalidate=true"), PROPERTIES.format(flag="requisite")),
            ImportOutcome.TAKEN,
        ),
    ],
)
def test_guests_come_in_without_a_password(tmp_path, modules, outcome):
    config = read(tmp_path, entry(*modules))
    assert config.authentication == Authentication(USERS, True, "visitor", "visitors")
    [finding] = [each for each in config.report if each.element == "jaasAuthenticationPlugin"]
    assert finding.what == outcome


@pytest.mark.parametrize(
    ("login_config", "why"),
    [
        ("", "no readable entry 'sluice'"),
        (entry("com.sun.security.auth.module.LdapLoginModule required;"), "LdapLoginModule required"),
        (entry(PROPERTIES.format(flag="optional")), "PropertiesLoginModule optional"),
        (entry(GUEST.format(options=""), PROPERTIES.format(flag="required")), "combination"),
        (entry("org.apache.activemq.jaas.PropertiesLoginModule required;"), "has no option"),
        (entry("what is this;"), "is not a login module"),
        (entry(PROPERTIES.format(flag="required").replace("users.properties", "nowhere")), "No such file"),
    ],
)
def test_what_cannot_be_read_lets_nobody_in(tmp_path, login_config, why):
    config = read(tmp_path, login_config)
    assert config.authentication == Authentication()
    [finding] = [each for each in config.report if each.element == "jaasAuthenticationPlugin"]
    assert finding.what == ImportOutcome.UNKNOWN
    assert "no client can connect" in finding.why
    assert why in finding.why


def test_a_user_whose_password_is_encrypted_cannot_connect(tmp_path):
    read(tmp_path, entry(PROPERTIES.format(flag="required")))
    (tmp_path / "users.properties").write_text("alice=ENC(abc)")
    config = read_config(tmp_path / "activemq.xml")
    assert config.users == (User("alice", None, frozenset({"users", "admins"})),)


@pytest.mark.parametrize(
    "plugin",
    [
        "<jaasCertificateAuthenticationPlugin configuration='x'/>",
        "<jaasDualAuthenticationPlugin configuration='x'/>",
        "<bean xmlns='http://www.springframework.org/schema/beans' class='com.example.AuthPlugin'/>",
        "<ref xmlns='http://www.springframework.org/schema/beans' bean='ldapPlugin'/>",
        "<shiroPlugin/>",
    ],
)
def test_guards_nobody_knows_let_nobody_in(plugin):
    config = parse_config(f"<broker><plugins>{plugin}</plugins></broker>", {})
    assert config.authentication == Authentication()
    assert any("no client can connect" in each.why for each in config.report)


def test_plugins_given_by_reference_let_nobody_in():
    config = parse_config('<broker plugins="#simple"/>', {})
    assert config.authentication == Authentication()


def test_a_plugin_that_guards_nothing_is_only_reported():
    config = parse_config("<broker><plugins><bean class='com.example.Counting'/></plugins></broker>", {})
    assert config.authentication is None
    assert [(each.element, each.what) for each in config.report] == [("bean", ImportOutcome.UNKNOWN)]


@pytest.mark.parametrize(
    "text",
    [
        '<broker messageAuthorizationPolicy="#policy"/>',
        "<broker><messageAuthorizationPolicy><bean class='x'/></messageAuthorizationPolicy></broker>",
        "<broker><plugins><authorizationPlugin/></plugins><messageAuthorizationPolicy/></broker>",
        "<broker><plugins><authorizationPlugin map='#map'/></plugins></broker>",
        "<broker><plugins><fancyAuthorizationPlugin/></plugins></broker>",
    ],
)
def test_rights_nobody_can_read_are_given_to_nobody(text):
    config = parse_config(text, {})
    assert config.authorization == ()
    assert any(each.what is ImportOutcome.UNKNOWN for each in config.report) or "<authorizationPlugin/>" in text
