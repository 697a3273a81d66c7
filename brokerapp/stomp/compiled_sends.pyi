"""Types of compiled_sends.pyx."""

from brokerapp.stomp.frame_batches import Frame, SendFrame

class CompiledSendReader:
    """Reads the SENDs of one connection."""

    def read(
        self, buffer: bytes, start: int, is_1_2: bool, max_body: int, sends: list[SendFrame | Frame], /
    ) -> int: ...
