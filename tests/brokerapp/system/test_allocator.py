import platform

import pytest

from brokerapp.system.allocator import keep_freed_memory


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has mallopt")
def test_glibc_takes_what_it_is_told():
    assert keep_freed_memory()
