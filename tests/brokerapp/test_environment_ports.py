"""What variables say of further ways to the broker."""

from brokerapp.environment import Environment


def test_there_is_no_other_way_than_stomp_unless_it_has_a_port():
    assert Environment.read({}).extra_ports == {}
    assert Environment.read({"SLUICE_WS_PORT": ""}).extra_ports == {}


def test_each_way_has_a_variable_of_its_own():
    ports = {"SLUICE_STOMP_SSL_PORT": "1", "SLUICE_WS_PORT": "2", "SLUICE_WSS_PORT": "3"}
    environment = Environment.read({**ports, "SLUICE_TLS_CERTIFICATE": "b.p12", "SLUICE_TLS_PASSWORD": "p"})
    assert environment.extra_ports == {"stomp+ssl": 1, "ws": 2, "wss": 3}
    assert (environment.tls_certificate, environment.tls_key, environment.tls_password) == ("b.p12", None, "p")
    assert "'p'" not in repr(environment)
