"""Networks read from PyTorch; skipped where it is not installed."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope import InputError, kernels

torch = pytest.importorskip("torch", reason="PyTorch is not installed (the torch extra)")
nn = torch.nn


def test_dense():
    module = nn.Sequential(
        nn.Linear(5, 64), nn.GELU(), nn.Linear(64, 64, bias=False), nn.Tanh(), nn.Linear(64, 1)
    )
    k = kernels.from_torch(module, weight_variance=1.5, bias_variance=0.2)
    act, dense = kernels.activation, kernels.dense
    expected = kernels.sequential(
        dense(1.5, 0.2), act("gelu"), dense(1.5, 0.0), act("tanh"), dense(1.5, 0.2)
    )
    assert k.layers == expected.layers


def test_convolutional_against_random_torch_networks():
    torch.manual_seed(0)
    images = torch.randn(3, 2, 5, 4)
    width, draws = 200, []
    module = nn.Sequential(
        nn.Conv2d(2, width, 3, stride=2, padding=1, bias=False),
        nn.LeakyReLU(0.1),
        nn.Conv2d(width, width, (2, 1), padding_mode="zeros", bias=False),
        nn.ELU(),
        nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        nn.Linear(width, 1, bias=False),
    )
    for _ in range(40):
        with torch.no_grad():
            for layer in module:
                if isinstance(layer, nn.Conv2d):
                    fan_in = layer.weight[0].numel()
                    layer.weight.normal_(0.0, (2.0 / fan_in) ** 0.5)
            units = module[:-1](images).numpy().astype(float)
        draws.append(2.0 * units @ units.T / width)
    draws = np.array(draws)
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    K = kernels.from_torch(module)(images.numpy())
    assert np.all(np.abs(draws.mean(axis=0) - K) < 4 * error)


def test_circular_padding_layer_norm_and_flatten():
    module = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, padding_mode="circular"),
        nn.LayerNorm([8, 4, 4]),
        nn.ReLU(),
        nn.Identity(),
        nn.Conv2d(8, 8, 3, padding="same"),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(128, 1),
    )
    k = kernels.from_torch(module, input_shape=(1, 4, 4))
    assert k.layers[0].padding == "circular"
    assert k.layers[1] == kernels.layer_norm(1e-5, "all")
    assert k(np.random.default_rng(0).normal(size=(3, 16))).shape == (3, 3)


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        (lambda: nn.Linear(2, 1), "needs a torch.nn.Sequential"),
        (lambda: nn.Sequential(nn.Linear(2, 2), nn.Softmax(-1)), "layer 1, Softmax"),
        (lambda: nn.Sequential(nn.Linear(2, 2), nn.Dropout()), "no counterpart"),
        (lambda: nn.Sequential(nn.GELU(approximate="tanh")), "approximate='none'"),
        (lambda: nn.Sequential(nn.Conv2d(2, 2, 1, groups=2)), "groups must be 1"),
        (lambda: nn.Sequential(nn.Conv2d(2, 2, 2, dilation=2)), "dilation must be 1"),
        (lambda: nn.Sequential(nn.AdaptiveAvgPool2d(2)), "average over all"),
        (lambda: nn.Sequential(nn.Flatten(0)), "all but records"),
        (lambda: nn.Sequential(nn.Conv2d(2, 2, 2, padding="same")), "must be odd"),
    ],
)
def test_refusals(module, sentence):
    with pytest.raises(InputError, match=sentence):
        kernels.from_torch(module())
