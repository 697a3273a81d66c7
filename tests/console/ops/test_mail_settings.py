"""Test SLUICE_MAIL, and sending a mail to a listening server."""

import socketserver
import threading

import pytest
from django.core.mail import EmailMessage

from brokerapp.errors import ConfigurationRefused
from console.ops.mail_settings import MailServer

#: What a server answers to what it is told; to all else that it is well.
ANSWERS = {"EHLO": b"250-here\r\n250 HELP", "DATA": b"354 go on", "QUIT": b"221 bye"}


def read(text: str) -> MailServer:
    return MailServer.read({"SLUICE_MAIL": text})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", MailServer()),
        ("smtp://mail.example.org", MailServer("mail.example.org", 25)),
        ("smtps://mail.example.org", MailServer("mail.example.org", 465, is_secure=True)),
        (
            "smtp://me%40here:p%2Fw@mail:587?tls=1",
            MailServer("mail", 587, "me@here", "p/w", becomes_secure=True),
        ),
    ],
)
def test_a_server_is_named_by_an_address(text, expected):
    assert read(text) == expected


@pytest.mark.parametrize("text", ["mail.example.org:25", "http://me:secret@mail", "smtp://", "smtp://mail:port"])
def test_what_is_no_address_of_a_server_is_refused_without_its_password(text):
    with pytest.raises(
        ConfigurationRefused, match=r"SLUICE_MAIL is not the URL of a mail server\. Expected: smtp://"
    ) as no:
        read(text)
    assert "secret" not in str(no.value)


class _Conversation(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        """Take mails as the protocol has it; each line is kept."""
        self._say(b"220 here")
        for line in self.rfile:
            self.server.told.append(line.decode().strip())
            verb = line[:4].decode().upper().strip()
            self._say(ANSWERS.get(verb, b"250 well"))
            if verb == "DATA":
                self.server.mails.append(self._mail())
                self._say(b"250 taken")
            if verb == "QUIT":
                return

    def _mail(self) -> str:
        return b"".join(iter(self.rfile.readline, b".\r\n")).decode()

    def _say(self, line: bytes) -> None:
        self.wfile.write(line + b"\r\n")


@pytest.fixture
def server():
    with socketserver.TCPServer(("127.0.0.1", 0), _Conversation) as listening:
        listening.told, listening.mails = [], []
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield listening
        listening.shutdown()


def test_a_mail_is_handed_in_to_the_server(server, settings):
    named = read(f"smtp://127.0.0.1:{server.server_address[1]}")
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = named.host, named.port
    settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = named.user, named.password
    settings.EMAIL_USE_SSL, settings.EMAIL_USE_TLS = named.is_secure, named.becomes_secure
    assert EmailMessage("Morning", "1,200 messages", "sluice@here", ["team@example.org"]).send() == 1
    [mail] = server.mails
    assert "Subject: Morning" in mail
    assert "1,200 messages" in mail
    assert "rcpt TO:<team@example.org>" in server.told
