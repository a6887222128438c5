"""Two processes of four devices each compute together: what `worker.py` found in each."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.cheap_programs import FLAGS

WORKER = Path(__file__).parent / "worker.py"
SECONDS = 240  # far more than it takes


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Findings of each process, by scene."""
    folder = tmp_path_factory.mktemp("processes")
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    flags = f"{os.environ.get('XLA_FLAGS', '')} {FLAGS} --xla_force_host_platform_device_count=4"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    files = [folder / f"{n}.json" for n in range(2)]
    logs = [folder / f"{n}.log" for n in range(2)]
    started = []
    for n in range(2):
        command = [sys.executable, str(WORKER), str(n), str(port), str(files[n])]
        with logs[n].open("w") as out:
            started.append(subprocess.Popen(command, env=environment, stdout=out, stderr=out))
    try:
        for process in started:
            process.wait(timeout=SECONDS)
    finally:
        for process in started:
            process.kill()
            process.wait()
    for file, log in zip(files, logs, strict=True):
        assert file.exists(), log.read_text()[-5000:]
    found = [json.loads(file.read_text()) for file in files]
    for each in found:
        for scene, what in each.items():
            if isinstance(what, dict) and "failed" in what:
                pytest.fail(f"{scene}\n{what['failed']}")
    return found


def test_collectives(both: list[dict[str, Any]]) -> None:
    for r, each in enumerate(both):
        found = each["collectives"]
        assert found["rank"] == [r, 2, True]
        assert found["SUM"] == [1, 3, 5] and found["AVG"] == [0.5, 1.5, 2.5]
        assert found["PRODUCT"] == [0, 2, 6]
        assert found["MIN"] == [0, 1, 2] and found["MAX"] == found["integers MAX"] == [1, 2, 3]
        assert found["integers BAND"] == [0 & 1, 1 & 2, 2 & 3]
        assert found["integers BOR"] == [0 | 1, 1 | 2, 2 | 3]
        assert found["integers BXOR"] == [0 ^ 1, 1 ^ 2, 2 ^ 3]
        whole, *out = found["written"]
        assert whole == [0, 1, 10, 11]
        assert out[0] == ([1, 3], [5, 7])[r] and out[1] == ([2, 2], [11, 11])[r]
        assert out[2] == [r + 1, r + 1] and out[3] == [r, 10 + r]
        assert out[4] == ([1, 1], [3, 3])[r] and out[5] == [1, 1]
        assert out[6:8] == [[0.5], [1.5]] and out[10:] == [[r], [10 + r]]
        assert out[8:10] == ([[0], [0]], [[0.5], [1.5]])[r]
        lengths, gathered, sent, scattered = found["objects"]
        assert lengths == [300, 600] and sent == [1, {"r": 1}] and scattered == ["ab"[r]]
        assert gathered == ([{"r": 0}, {"r": 1}], [None, None])[r]


def test_sends_between_programs_of_one_process(both: list[dict[str, Any]]) -> None:
    assert both[0]["point_to_point"] == [1, [1.5, 1.5]]
    assert both[1]["point_to_point"] == [0, [0, 1, 2], 6]


def test_receives_keep_the_order_of_their_calls(both: list[dict[str, Any]]) -> None:
    assert both[1]["late_waits"] == [1.0, 2.0]


def test_groups(both: list[dict[str, Any]]) -> None:
    outside = "Running all_reduce on global rank 0 which does not belong to the given group."
    assert both[0]["groups"] == [-1, -1, [outside], [0, 1], 0]
    assert both[1]["groups"] == [0, 1, [], [0, 1], 1]


def test_gradients_of_collectives(both: list[dict[str, Any]]) -> None:
    # 1 + 2 arrive at the sum, times the factor before it; the same arrive at each part.
    assert both[0]["gradients_of_collectives"] == [6.0, 6.0]
    assert both[1]["gradients_of_collectives"] == [9.0, 9.0]


def test_data_parallel_training_is_that_of_one_device(both: list[dict[str, Any]]) -> None:
    for each in both:
        found = each["data_parallel"]
        np.testing.assert_allclose(found["mean"], found["alone"], rtol=1e-5)
        assert found["same"] and found["devices"] == 4
        assert found["keys"] == ["module.0.bias", "module.0.weight"]


def test_gradients_are_averaged_after_no_sync(both: list[dict[str, Any]]) -> None:
    for r, each in enumerate(both):
        assert each["without_averages"]["grads"] == [[[r + 1.0] * 2], [[3.0] * 2]]


def test_unused_parameters(both: list[dict[str, Any]]) -> None:
    for r, each in enumerate(both):
        found = each["unused_parameters"]
        assert found["grads"] == [[[1.0, 1.0]], [[0.5, 0.5]], None]
        assert f"which did not receive grad for rank {r}: 1 2\n" in found["said"]
        assert found["said"].startswith("Expected to have finished reduction in the prior iter")


def test_buffers_are_the_first_processs_and_shapes_are_checked(both: list[dict[str, Any]]) -> None:
    means = [each["buffers_and_shapes"]["mean"] for each in both]
    assert means[0] == means[1] and any(means[0])
    for each in both:
        assert each["buffers_and_shapes"]["said"] == (
            "[1]: params[0] in this process with sizes [2, 2] appears not to match sizes of the "
            "same param in process 0."
        )


def test_synchronized_norms_are_those_of_the_joined_batch(both: list[dict[str, Any]]) -> None:
    for each in both:
        assert each["synchronized_norms"].keys() == {"0.1", "None"}
        assert max(each["synchronized_norms"].values()) < 1e-10


def test_sharded_training_is_that_of_one_device(both: list[dict[str, Any]]) -> None:
    for each in both:
        alone, found = each["data_parallel"]["alone"], each["fully_sharded"]
        np.testing.assert_allclose(found["mean"], alone, rtol=1e-5)
        assert found["devices"] == 4 and found["parts"] == [[4, 6], [4, 6]]


def test_a_mesh_over_both_processes(both: list[dict[str, Any]]) -> None:
    for r, each in enumerate(both):
        alone, found = each["data_parallel"]["alone"], each["over_all_devices"]
        np.testing.assert_allclose(found["losses"], alone, rtol=1e-5)
        assert found["devices"] == 8 and found["placements"] == "(Shard(dim=0), Replicate())"
        assert found["full"] == both[0]["over_all_devices"]["full"]
        assert found["said"] == (
            "the module lies on devices of several processes, and is called with a tensor of this "
            "one: give all processes' parts as one batch, by "
            "`leafax.adapters.shard_batch(mesh.jax, P('dp'), x)`, and the targets too"
        )
        assert len(found["saved"]) == (8, 0)[r]  # the first process alone writes a file
        whole = list(range(8))
        assert found["tensor"] == [whole, whole[4 * r : 4 * r + 4]]
        assert found["joined"] == [0, 0, 1, 1] and found["place"] == [2 * r, 0]
        assert found["group"] == 2 and found["own"] == 1 and found["kept"]


def test_a_process_that_dies_is_an_error_in_the_other(both: list[dict[str, Any]]) -> None:
    assert both[0]["death"]["said"].startswith(
        "all_reduce over 2 processes failed, as it does when one of them is gone: "
    )
