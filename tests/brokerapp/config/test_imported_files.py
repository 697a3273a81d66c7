"""Test that imports of files are followed and refused as Spring does."""

import os

import pytest

from brokerapp.config import ImportOutcome, import_definitions, read_config
from brokerapp.config.parsing.beans import MAX_IMPORTS
from brokerapp.config.parsing.load_context import MAX_BYTES
from brokerapp.errors import ConfigurationRefused

BROKER = '<broker xmlns="http://activemq.apache.org/schema/core" brokerName="{}"/>'
OTHERS = '<bean id="x" class="java.lang.String"/>'


def beans(*parts):
    return f'<beans xmlns="http://www.springframework.org/schema/beans">{"".join(parts)}</beans>'


def imported(resource):
    return f'<import resource="{resource}"/>'


def properties(**values):
    pairs = "".join(f"{name}={value}\n" for name, value in values.items())
    return (
        '<bean class="org.springframework.beans.factory.config.PropertyPlaceholderConfigurer">'
        f'<property name="properties"><value>{pairs}</value></property></bean>'
    )


@pytest.fixture
def read(tmp_path):
    """The configuration in a text, with these other files beside it."""

    def read(text, properties=None, /, **files):
        for name, content in files.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(exist_ok=True)
            path.with_suffix(".xml").write_text(content)
        (tmp_path / "activemq.xml").write_text(text)
        return read_config(tmp_path / "activemq.xml", properties)

    return read


@pytest.mark.parametrize(
    "resource",
    [
        "other.xml", "./other.xml", "classpath:other.xml", "classpath:/other.xml", "CLASSPATH:other.xml",
        "file:${activemq.conf}/other.xml", "file://${activemq.conf}/other.xml", "${activemq.conf}/other.xml",
        "${which:other}.xml", "${set}.xml",
    ],
)  # fmt: skip
def test_a_broker_may_stand_in_a_file_that_is_imported(read, resource):
    config = read(beans(imported(resource)), {"set": "other"}, other=beans(BROKER.format("within")))
    assert config.name == "within"
    assert [(each.element, each.what) for each in config.report] == [("import", ImportOutcome.TAKEN)]


def test_imports_lie_beside_the_file_that_names_them_and_the_classpath_stays(read):
    config = read(
        beans(imported("sub/one.xml"), BROKER.format("${a}-${b}-${c}")),
        sub__one=beans(imported("two.xml"), imported("classpath:two.xml"), properties(a="1")),
        sub__two=beans(properties(b="2")),
        two=beans(properties(c="3")),
    )
    assert config.name == "1-2-3"


def test_lines_of_an_imported_file_bear_its_name(read):
    broker = '<broker xmlns="http://activemq.apache.org/schema/core"\n nosuch="1"/>'
    config = read(beans(OTHERS, imported("other.xml")), other=beans("\n\n", broker))
    assert [str(each).partition(" (")[0] for each in config.report][-1].startswith("other.xml, line ")
    refused = broker.replace("/>", "><plugins/>\n<plugins/></broker>")
    with pytest.raises(ConfigurationRefused, match=r"activemq.xml: other.xml, line 5: plugins: duplicate element"):
        read(beans(imported("other.xml")), other=beans("\n\n", refused))


def test_what_does_not_concern_a_broker_is_one_line_of_the_report(read):
    config = read(beans(imported("other.xml"), imported("jetty.xml"), BROKER.format("b")), other=beans(OTHERS, OTHERS))
    assert [(each.element, each.what, each.why) for each in config.report] == [
        ("import", ImportOutcome.IGNORED, "other.xml: does not configure a broker"),
        ("import", ImportOutcome.IGNORED, "jetty.xml: web pages are served by the console"),
    ]


def test_a_file_may_be_imported_twice(read):
    assert (
        read(beans(imported("x.xml"), imported("x.xml"), BROKER.format("${a}")), x=beans(properties(a="b"))).name == "b"
    )


def test_text_without_a_folder_reads_no_files(tmp_path):
    (tmp_path / "other.xml").write_text(beans(properties(a="b")))
    _, report = import_definitions(beans(imported(f"file:{tmp_path}/other.xml"), BROKER.format("x")))
    assert [(each.element, each.what) for each in report] == [("import", ImportOutcome.IGNORED)]
    assert "not read" in report[0].why


ENTITIES = '<!DOCTYPE beans [<!ENTITY e SYSTEM "file:///etc/hostname">]>'


@pytest.mark.parametrize(
    ("main", "other", "rule"),
    [
        ("none.xml", "", "line 1: import: cannot read .*none.xml: No such file"),
        ("classpath:none.xml", "", "No such file"),
        ("oth*.xml", beans(), "No such file"),
        ("${nosuch}.xml", "", "No such file"),
        ("", "", "resource is missing"),
        (" ", "", "resource is missing"),
        (".", "", "is not a file"),
        ("/dev/zero", "", "is not a file"),
        ("http://127.0.0.1:9/other.xml", "", "not a local file"),
        ("jar:file:x.jar!/other.xml", "", "not a local file"),
        ("other.xml", "hello", "other.xml, line 1: invalid XML"),
        ("other.xml", BROKER.format("b"), "the root of an imported file must be <beans>"),
        ("other.xml", ENTITIES + beans("<x>&e;</x>"), "XML entities are not supported"),
        (
            "other.xml",
            beans(BROKER.format("a"), BROKER.format("b")),
            "duplicate <broker>: the first is in other.xml, line 1",
        ),
        ("other.xml", beans(imported("activemq.xml")), "imports itself"),
        ("other.xml", beans(imported("other.xml")), "imports itself"),
        ("other.xml", beans(imported("x/../other.xml")), "imports itself"),
        ("other.xml", " " * (MAX_BYTES + 1), f"larger than {MAX_BYTES} bytes"),
    ],
    ids=lambda value: value[:30],
)
def test_what_cannot_be_imported_is_refused(read, main, other, rule):
    with pytest.raises(ConfigurationRefused, match=rule):
        read(beans(imported(main)), other=other)


def test_a_pipe_is_not_waited_for(read, tmp_path):
    os.mkfifo(tmp_path / "pipe.xml")
    with pytest.raises(ConfigurationRefused, match="is not a file"):
        read(beans(imported("pipe.xml")))


def test_files_that_each_import_the_next_twice_come_to_an_end(read):
    files = {f"f{i}": beans(imported(f"f{i + 1}.xml") * 2) for i in range(12)}
    with pytest.raises(ConfigurationRefused, match=f"at most {MAX_IMPORTS} files"):
        read(beans(imported("f0.xml")), **files, f12=beans())
