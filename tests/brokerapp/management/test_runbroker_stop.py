"""Test what `manage.py runbroker` prints from its start to a clean stop."""

from tests.runbroker import Run

XML = """<broker xmlns="http://activemq.apache.org/schema/core" brokerName="stops"><transportConnectors>
  <transportConnector name="stomp" uri="stomp://127.0.0.1:0"/></transportConnectors></broker>"""


def test_a_clean_stop_is_printed_when_all_has_ended(tmp_path):
    config = tmp_path / "activemq.xml"
    config.write_text(XML)
    run = Run("--config", config, "--data", tmp_path / "data", log=tmp_path / "log")
    run.ready()
    assert run.stop() == 0, run.errors()
    assert [run.hear(), run.hear()] == ["stopped", ""]
