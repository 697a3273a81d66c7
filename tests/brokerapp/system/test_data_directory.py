"""Test that later processes find the store of a data directory, embedded or shared."""

import socket
import stat
from argparse import Namespace
from io import StringIO

import pytest

from brokerapp.config import read_config
from brokerapp.errors import ConfigurationRefused, StoreUnavailable
from brokerapp.management.runbroker import NodeProcess
from brokerapp.system.data_directory import DataDirectory, make_data_directory

URL = "redis://user:secret@store.example.org:6379/0"


def test_a_shared_store_is_found_and_its_url_is_its_owners_only(tmp_path):
    folder = DataDirectory(tmp_path)
    (tmp_path / "redis.url").write_text("readable by others")
    folder.remember("orders", URL)
    assert folder.locate_store() == (URL, "orders")
    assert stat.S_IMODE((tmp_path / "redis.url").stat().st_mode) == 0o600


def test_a_broker_that_went_back_to_its_own_store_is_found_there(tmp_path):
    folder = DataDirectory(tmp_path)
    folder.remember("orders", URL)
    folder.remember("orders")
    folder.store.mkdir()
    (folder.store / "store.url").write_text("unix:///own\n")
    assert folder.locate_store() == ("unix:///own", "orders")


@pytest.mark.parametrize(
    ("folder", "reason"),
    [
        ("file", "not a folder"),
        ("file/below", "FOLDER/file is not a folder"),
        ("x" * 300, "cannot be created: file name too long"),
    ],
)
def test_a_data_folder_that_cannot_be_made_is_named_with_the_reason(tmp_path, folder, reason):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationRefused) as refused:
        make_data_directory(tmp_path / folder)
    assert str(refused.value) == f"SLUICE_DATA={tmp_path / folder}: {reason.replace('FOLDER', str(tmp_path))}"


def test_a_folder_whose_broker_is_not_up_yet_is_named(tmp_path):
    with pytest.raises(StoreUnavailable, match="it is still starting: broker"):
        DataDirectory(tmp_path).locate_store()
    with pytest.raises(StoreUnavailable, match=r"data folder .* not found"):
        DataDirectory(tmp_path / "nowhere").locate_store()


def test_of_a_broker_that_was_here_and_was_stopped_it_is_said_that_it_does_not_run(tmp_path):
    folder = DataDirectory(tmp_path)
    folder.remember("orders")
    with pytest.raises(StoreUnavailable, match=r"broker orders of --data .* is not running, or still starting"):
        folder.locate_store()


async def test_a_start_that_is_refused_as_its_port_is_taken_leaves_no_folder(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = tmp_path / "activemq.xml"
        config.write_text(
            '<broker xmlns="http://activemq.apache.org/schema/core"><transportConnectors>'
            f'<transportConnector name="stomp" uri="stomp://127.0.0.1:{port}"/></transportConnectors></broker>'
        )
        options = Namespace(data=tmp_path / "data", redis=None)
        with pytest.raises(ConfigurationRefused, match=f"'stomp' cannot listen on 127.0.0.1:{port}"):
            await NodeProcess(options, StringIO()).run(read_config(config, {}), {}, None)
    assert not (tmp_path / "data").exists()
