"""Send files and texts to browsers and programs block by block, however large they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.http import FileResponse

#: Bytes of a file, or characters of a text, that are sent at once: with Django's 4096, most of the time is spent
#: between threads.
BLOCK_SIZE = 256 * 1024


class FileDownload(FileResponse):
    """A file that is sent as it is read. Asynchronous servers read all of a `FileResponse` into memory first."""

    block_size = BLOCK_SIZE

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the blocks of the file, each read by a thread."""
        blocks = iter(self.streaming_content)
        read = sync_to_async(lambda: next(blocks, b""), thread_sensitive=False)
        while block := await read():
            yield block


async def in_blocks(pieces: Iterator[str]) -> AsyncIterator[str]:
    """Yield a text whose pieces have any size in blocks, each made by a thread while the former is sent."""
    make = sync_to_async(lambda: _next_block(pieces))
    while block := await make():
        yield block


def _next_block(pieces: Iterator[str]) -> str:
    taken, size = [], 0
    for piece in pieces:
        taken.append(piece)
        size += len(piece)
        if size >= BLOCK_SIZE:
            break
    return "".join(taken)
