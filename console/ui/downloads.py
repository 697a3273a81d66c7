"""Send files to browsers and programs block by block, however large they are."""

from __future__ import annotations

from collections.abc import AsyncIterator

from asgiref.sync import sync_to_async
from django.http import FileResponse


class FileDownload(FileResponse):
    """A file that is sent as it is read. Asynchronous servers read all of a `FileResponse` into memory first."""

    block_size = 256 * 1024  #: bytes read at once; with Django's 4096, most of the time is spent between threads

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the blocks of the file, each read by a thread."""
        blocks = iter(self.streaming_content)
        read = sync_to_async(lambda: next(blocks, b""), thread_sensitive=False)
        while block := await read():
            yield block
