"""Test Java's property files, and the beans that name them."""

import pytest

from brokerapp.config import ImportOutcome, import_definitions, read_config

CONFIGURERS = [
    '<bean class="org.springframework.beans.factory.config.PropertyPlaceholderConfigurer">'
    '<property name="locations"><value>file:${activemq.conf}/names.properties</value></property></bean>',
    '<bean class="org.springframework.context.support.PropertySourcesPlaceholderConfigurer">'
    '<property name="locations"><list><value>classpath:names.properties</value></list></property></bean>',
    '<bean class="x.PropertyPlaceholderConfigurer"><property name="location" value="names.properties"/></bean>',
    '<context:property-placeholder xmlns:context="http://www.springframework.org/schema/context" '
    'location="names.properties"/>',
    '<bean class="x.PropertyPlaceholderConfigurer"><property name="properties"><props><prop key="name">filed</prop>'
    "</props></property></bean>",
    '<bean class="x.PropertyPlaceholderConfigurer"><property name="properties"><value>name=filed</value>'
    "</property></bean>",
]


def write(folder, configurer, broker="<broker brokerName='${name}'/>"):
    file = folder / "activemq.xml"
    file.write_text(f'<beans xmlns="http://www.springframework.org/schema/beans">\n{configurer}\n{broker}</beans>')
    return file


@pytest.mark.parametrize("configurer", CONFIGURERS)
def test_placeholders_have_their_values_from_where_the_beans_say(tmp_path, configurer):
    (tmp_path / "names.properties").write_text("name=filed\n")
    assert read_config(write(tmp_path, configurer), {"name": "less"}).name == "filed"


def test_a_property_file_that_cannot_be_read_is_reported_and_the_environment_helps_out(tmp_path, monkeypatch):
    monkeypatch.setenv("NAME", "from outside")
    config = read_config(write(tmp_path, CONFIGURERS[2]))
    assert config.name == "from outside"
    [finding] = [each for each in config.report if "names.properties" in each.why]
    assert (finding.line, finding.what) == (2, ImportOutcome.IGNORED)
    assert "No such file" in finding.why


def test_encrypted_properties_have_no_value(tmp_path):
    (tmp_path / "names.properties").write_text("name=open\nsecret=ENC(abc)\n")
    config = read_config(write(tmp_path, CONFIGURERS[2], "<broker brokerName='${name}' dataDirectory='${secret}'/>"))
    why = [each.why for each in config.report]
    assert any("secret is encrypted in names.properties" in each for each in why)
    assert any(each.startswith("placeholder ${secret} has no value, so that the text itself is used") for each in why)


def test_a_placeholder_without_a_value_is_reported_with_its_line_and_how_to_give_it_one(tmp_path):
    config = read_config(write(tmp_path, "", "<broker brokerName='b' dataDirectory='${mail.host}'/>"))
    [finding] = [each for each in config.report if "placeholder" in each.why]
    assert finding.line
    assert "placeholder ${mail.host} has no value" in finding.why
    assert "set the environment variable MAIL_HOST, name a property file, or write ${mail.host:DEFAULT}" in finding.why


def test_what_comes_as_text_alone_has_no_files_read(tmp_path):
    (tmp_path / "names.properties").write_text("name=filed\n")
    text = write(tmp_path, CONFIGURERS[0].replace("${activemq.conf}", str(tmp_path))).read_text()
    report = import_definitions(text)[1]
    assert any("names.properties is not read" in each.why for each in report)


def test_the_folders_of_activemq_are_known_from_where_the_file_lies(tmp_path):
    conf = tmp_path / "conf"
    conf.mkdir()
    assert read_config(write(conf, "", "<broker brokerName='${activemq.base}'/>")).name == str(tmp_path)
    assert read_config(write(conf, "", "<broker brokerName='${activemq.conf}'/>")).name == str(conf)
