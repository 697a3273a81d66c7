"""Test the codec with some of the damaged frames of the nightly run."""

import pytest

from brokerapp.openwire.codec import Codec
from tests import fuzz_openwire


def test_no_damaged_frame_goes_wrong_in_a_short_run():
    decoded, wrong = fuzz_openwire.run(7, 3000)
    assert wrong == 0
    assert 0 < decoded < 3000


def test_a_frame_that_goes_wrong_is_reported(monkeypatch, capsys):
    def decode(self, frame):
        raise ZeroDivisionError

    monkeypatch.setattr(Codec, "decode", decode)
    assert fuzz_openwire.run(7, 5) == (0, 5)
    assert capsys.readouterr().out.count("\nZeroDivisionError\n") == 5
    with pytest.raises(ZeroDivisionError):
        fuzz_openwire.check(Codec(12), b"\x0a")
