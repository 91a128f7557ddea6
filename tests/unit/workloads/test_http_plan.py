"""What the workload ``http`` plans, against what nginx, ab(1) and wrk are documented to take."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from twinbed.contracts.command import PROGRAM_BYTES, Command, Ready
from twinbed.workloads.http import HttpParams, http

ONE = [("client", "server", "10.0.0.2")]
TWO = [("client1", "server1", "10.0.0.2"), ("client2", "server2", "10.0.0.4")]


def ab(plan_params: HttpParams) -> tuple[str, ...]:
    return tuple(http.plan(plan_params, ONE).clients[0].argv)


def test_defaults_ask_for_500_bytes_for_10_seconds():
    plan = http.plan(HttpParams(), ONE)
    assert plan.prepare == []
    assert plan.servers == [
        Command(
            "server",
            ("nginx", "-e", "{artifacts}/nginx-error.log", "-c", "{artifacts}/nginx.conf"),
            ready=Ready(listening=80),
            memory_bytes=PROGRAM_BYTES + 500,
        )
    ]
    assert plan.warm_up == [
        Command("client", ("ab", "-q", "-n", "1", "http://10.0.0.2/payload"), stdout="warm-up.txt", limit_s=60.0)
    ]
    assert plan.clients == [
        Command(
            "client",
            (
                *("ab", "-q", "-r", "-s", "30", "-t", "10", "-n", "500000", "-c", "1"),
                *("-g", "{artifacts}/ab.tsv", "-e", "{artifacts}/ab.csv", "http://10.0.0.2/payload"),
            ),
            stdout="ab.txt",
            limit_s=70.0,
        )
    ]
    (conf_host, conf_path, _), (payload_host, payload_path, payload) = plan.files
    assert (conf_host, conf_path) == ("server", "{artifacts}/nginx.conf")
    assert (payload_host, payload_path, len(payload)) == ("server", "/run/www/payload", 500)


def test_ab_is_given_its_cap_after_its_time_since_a_time_sets_the_cap():
    argv = ab(HttpParams(duration="90s", max_requests=1234, threads=10, keep_alive="on"))
    assert argv.index("-t") < argv.index("-n")
    assert argv[argv.index("-t") + 1] == "90" and argv[argv.index("-n") + 1] == "1234" and argv[argv.index("-c") + 1] == "10"
    assert "-k" in argv
    assert "-k" not in ab(HttpParams(keep_alive="off"))


def test_a_large_document_is_made_on_the_server_with_its_exact_size():
    plan = http.plan(HttpParams(payload="16MiB"), ONE)
    assert [path for _host, path, _content in plan.files] == ["{artifacts}/nginx.conf"]
    assert [command.argv for command in plan.prepare] == [
        ("mkdir", "-p", "/run/www"),
        (
            *("dd", "if=/dev/urandom", "of=/run/www/payload", "bs=1M", "count=16777216"),
            *("iflag=fullblock,count_bytes", "status=none"),
        ),
    ]


def test_the_same_size_is_always_the_same_document_and_does_not_compress():
    import zlib

    first, second = (http.plan(HttpParams(payload="1MiB"), ONE).files[1][2] for _ in range(2))
    assert first == second and len(first) == 1048576
    assert len(zlib.compress(first)) >= len(first)


def test_https_listens_on_443_with_a_key_made_on_the_server():
    plan = http.plan(HttpParams(https="on"), ONE)
    assert plan.servers[0].ready == Ready(listening=443)
    assert plan.prepare[0].argv == (
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-keyout", "/run/twinbed-http.key", "-out", "/run/twinbed-http.crt"),
        *("-subj", "/CN=twinbed", "-set_serial", "1", "-days", "3650"),
    )
    assert plan.clients[0].argv[-1] == "https://10.0.0.2/payload"
    configuration = plan.files[0][2].decode()
    assert "listen 443 ssl" in configuration and "listen 80" not in configuration


def test_wrk_keeps_connections_unless_told_to_close_them():
    closing = http.plan(HttpParams(tool="wrk", threads=4, duration="90s"), ONE).clients[0]
    assert closing.argv == (
        *("wrk", "-t", "4", "-c", "4", "-d", "90s", "-T", "8s", "--latency", "-H", "Connection: close"),
        "http://10.0.0.2:80/payload",
    )
    assert closing.stdout == "wrk.txt"
    keeping = http.plan(HttpParams(tool="wrk", keep_alive=True), ONE).clients[0]
    assert "-H" not in keeping.argv


def test_pairs_have_a_server_a_warm_up_and_a_client_each():
    plan = http.plan(HttpParams(), TWO)
    assert [command.host for command in plan.servers] == ["server1", "server2"]
    assert [(command.host, command.argv[-1]) for command in plan.warm_up] == [
        ("client1", "http://10.0.0.2/payload"),
        ("client2", "http://10.0.0.4/payload"),
    ]
    assert [(command.host, command.argv[-1]) for command in plan.clients] == [
        ("client1", "http://10.0.0.2/payload"),
        ("client2", "http://10.0.0.4/payload"),
    ]
    assert [host for host, path, _ in plan.files if path.endswith("payload")] == ["server1", "server2"]


def test_no_warm_up_where_none_is_wanted():
    assert http.plan(HttpParams(warm_up_requests=0), ONE).warm_up == []


def test_ipv6_addresses_stand_in_brackets():
    assert http.plan(HttpParams(), [("client", "server", "fd00::2")]).clients[0].argv[-1] == "http://[fd00::2]/payload"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"duration": 1.5}, "whole seconds"),
        ({"duration": "0s"}, "greater than or equal to 1"),
        ({"threads": 0}, "greater than or equal to 1"),
        ({"threads": 10, "max_requests": 5}, "less than threads"),
        ({"payload": 0}, "greater than or equal to 1"),
        ({"tool": "curl"}, "'ab' or 'wrk'"),
        ({"treads": 2}, "Extra inputs are not permitted"),
    ],
)
def test_what_the_tools_would_refuse_is_refused(settings, said):
    with pytest.raises(ValidationError, match=said):
        HttpParams(**settings)


def test_every_setting_says_what_it_is():
    assert all(field.description for field in HttpParams.model_fields.values())


def test_the_estimate_of_time_is_the_duration_and_a_little():
    assert 90 < HttpParams(duration="90s").estimate_seconds() < 95


def test_the_estimate_of_bytes_is_bounded_by_the_cap_and_by_the_link():
    """A cap of 1000 requests in 10 s is 100 a second; a link of 8 kbit/s carries 2 documents of 500 bytes a second."""
    per_request = HttpParams(max_requests=1000, duration=10).estimate_bytes(10**9) / 100
    assert 40 < per_request < 60
    assert HttpParams().estimate_bytes(8000) == pytest.approx(2 * per_request)
    assert HttpParams(tool="wrk").estimate_bytes(10**9) == 0
