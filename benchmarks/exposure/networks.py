"""Truths of networks: many models of one architecture on complementary halves of the records.

``python benchmarks/exposure/networks.py exposure_data.npz --out truths`` (a GPU is used where there
is one).  Perceptrons are trained as stacked matrices, all at once; convolutional networks one after
the other, their training step replayed as one CUDA graph.  ``truth_files.py`` says what a file
holds; the losses of the first models are followed from epoch to epoch.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from truth_files import TRACED, halves, write_truth

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def own_log_odds(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """log p(own label) - log(1 - p), from logits of shape (..., records, classes)."""
    own = functional.one_hot(y, logits.shape[-1]).bool()
    others = logits.masked_fill(own, -torch.inf)
    return logits[own.expand_as(logits)].reshape(logits.shape[:-1]) - others.logsumexp(-1)


def trace_range(epochs: list[torch.Tensor]) -> np.ndarray:
    """The interquartile range over the epochs of each record's loss, from its log-odds."""
    losses = functional.softplus(-torch.stack(epochs).float())
    ends = torch.tensor([0.25, 0.75], device=losses.device)
    low, high = torch.quantile(losses, ends, dim=0)
    return np.asarray((high - low).cpu().numpy())


@dataclass(frozen=True)
class Perceptron:
    """A stack of perceptrons; no hidden layer gives multinomial logistic regressions."""

    hidden: tuple[int, ...]
    epochs: int
    batch: int
    rate: float = 1e-3
    decay: float = 1e-3
    dropout: float = 0.0

    def train(
        self, X: torch.Tensor, y: torch.Tensor, mask: np.ndarray, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        torch.manual_seed(seed)
        models, classes = len(mask), int(y.max()) + 1
        sizes = [X.shape[1], *self.hidden, classes]
        weights: list[torch.Tensor] = []
        for fan_in, fan_out in itertools.pairwise(sizes):
            bound = fan_in**-0.5
            weights.append((torch.rand(models, fan_in, fan_out, device=DEVICE) * 2 - 1) * bound)
            weights.append((torch.rand(models, 1, fan_out, device=DEVICE) * 2 - 1) * bound)
        for weight in weights:
            weight.requires_grad_(True)

        def logits(inputs: torch.Tensor, models: int, dropout: float = 0.0) -> torch.Tensor:
            layers = len(weights) // 2
            for layer in range(layers):
                matrix, shift = weights[2 * layer][:models], weights[2 * layer + 1][:models]
                inputs = torch.baddbmm(shift, inputs, matrix)
                if layer < layers - 1:
                    inputs = functional.dropout(torch.relu(inputs), dropout)
            return inputs

        def answers_of(models: int) -> torch.Tensor:
            found = []
            with torch.no_grad():
                for start in range(0, len(X), 500):
                    part = X[start : start + 500].expand(models, -1, -1)
                    found.append(own_log_odds(logits(part, models), y[start : start + 500]))
            return torch.cat(found, 1)

        fewest = int(mask.sum(1).min())
        rows = torch.from_numpy(np.stack([np.flatnonzero(m)[:fewest] for m in mask])).to(DEVICE)
        optimiser = torch.optim.AdamW(weights, lr=self.rate, weight_decay=self.decay)
        epochs = []
        for _ in range(self.epochs):
            order = torch.rand(models, fewest, device=DEVICE).argsort(1)
            for start in range(0, fewest - self.batch + 1, self.batch):
                chosen = rows.gather(1, order[:, start : start + self.batch])
                answers = logits(X[chosen], models, self.dropout)
                loss = functional.cross_entropy(
                    answers.flatten(0, 1), y[chosen].flatten(), reduction="sum"
                )
                optimiser.zero_grad(set_to_none=True)
                (loss / self.batch).backward()
                optimiser.step()
            epochs.append(answers_of(min(models, TRACED)))
        return answers_of(models).float().cpu().numpy(), trace_range(epochs)


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return torch.relu(inputs + self.body(inputs))


def block(inputs: int, outputs: int, pool: bool) -> list[nn.Module]:
    layers: list[nn.Module] = [
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    ]
    return [*layers, nn.MaxPool2d(2)] if pool else layers


def resnet(classes: int) -> nn.Sequential:
    """Nine layers, 32 to 128 channels."""
    return nn.Sequential(
        *block(3, 32, False),
        *block(32, 64, True),
        Residual(64),
        *block(64, 128, True),
        *block(128, 128, True),
        Residual(128),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
        nn.Linear(128, classes),
    )


def cnn(classes: int) -> nn.Sequential:
    """Two convolutions and two dense layers, no normalisation."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 49, 128),
        nn.ReLU(),
        nn.Linear(128, classes),
    )


def small_cnn(classes: int) -> nn.Sequential:
    """The same for pictures of 8 by 8."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 16, 128),
        nn.ReLU(),
        nn.Linear(128, classes),
    )


@dataclass(frozen=True)
class Convolutional:
    """SGD with momentum and a cosine schedule; augmentation is a flip and a shift by up to four."""

    build: Callable[[int], nn.Sequential]
    epochs: int
    batch: int
    rate: float
    decay: float = 5e-4
    augmented: bool = False

    def train(
        self, X: torch.Tensor, y: torch.Tensor, mask: np.ndarray, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        step = TrainingStep(self, X, y)
        answers, traces = [], []
        for k, m in enumerate(mask):
            epochs: list[torch.Tensor] = []
            answers.append(step.fit(m, seed * 100_000 + k, epochs if k < TRACED else None))
            if k < TRACED:
                traces.append(trace_range(epochs))
        return np.stack(answers), np.stack(traces)


class TrainingStep:
    """One network whose training step is captured once and replayed for every model."""

    def __init__(self, plan: Convolutional, X: torch.Tensor, y: torch.Tensor) -> None:
        self.plan, self.X, self.y = plan, X, y
        self.net = plan.build(int(y.max()) + 1).to(DEVICE, memory_format=torch.channels_last)
        self.parameters = list(self.net.parameters())
        self.momentum = [torch.zeros_like(p) for p in self.parameters]
        self.rate = torch.zeros((), device=DEVICE)
        self.pictures = X[: plan.batch].clone(memory_format=torch.channels_last)
        self.labels = y[: plan.batch].clone()
        self.padded = functional.pad(X, (4, 4, 4, 4)) if plan.augmented else None
        self.graph: torch.cuda.CUDAGraph | None = None
        if DEVICE.type == "cuda":
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self._step()
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self._step()

    def _step(self) -> None:
        with torch.autocast(DEVICE.type, torch.bfloat16, cache_enabled=False):
            answers = self.net(self.pictures)
        loss = functional.cross_entropy(answers.float(), self.labels)
        gradients = torch.autograd.grad(loss, self.parameters)
        with torch.no_grad():
            for p, g, v in zip(self.parameters, gradients, self.momentum, strict=True):
                v.mul_(0.9).add_(g).add_(p, alpha=self.plan.decay)
                p.sub_(v * self.rate)

    def _batch(self, chosen: torch.Tensor) -> torch.Tensor:
        if self.padded is None:
            return self.X[chosen]
        count, side = len(chosen), self.X.shape[-1]
        place = torch.arange(side, device=DEVICE)
        flipped = torch.rand(count, 1, device=DEVICE) < 0.5
        rows = place + torch.randint(0, 9, (count, 1), device=DEVICE)
        columns = torch.where(flipped, side - 1 - place, place)
        columns = columns + torch.randint(0, 9, (count, 1), device=DEVICE)
        found = self.padded[chosen[:, None, None], :, rows[:, :, None], columns[:, None, :]]
        return found.permute(0, 3, 1, 2)

    def _answers(self) -> torch.Tensor:
        self.net.eval()
        with torch.no_grad():
            answers = [self.net(part).float() for part in self.X.split(2500)]
        self.net.train()
        return own_log_odds(torch.cat(answers), self.y)

    def fit(
        self, mask: np.ndarray, seed: int, epochs: list[torch.Tensor] | None = None
    ) -> np.ndarray:
        """One model's log-odds; those after each epoch are added to ``epochs``."""
        torch.manual_seed(seed)
        for module in self.net.modules():
            if isinstance(module, nn.Conv2d | nn.BatchNorm2d | nn.Linear):
                module.reset_parameters()
        for v in self.momentum:
            v.zero_()
        self.net.train()
        plan = self.plan
        rows = torch.from_numpy(np.flatnonzero(mask)).to(DEVICE)
        per_epoch = len(rows) // plan.batch
        total, done = per_epoch * plan.epochs, 0
        for _ in range(plan.epochs):
            order = rows[torch.randperm(len(rows), device=DEVICE)]
            for k in range(per_epoch):
                warm = min(1.0, (done + 1) / per_epoch)
                self.rate.fill_(plan.rate * warm * 0.5 * (1 + np.cos(np.pi * done / total)))
                chosen = order[k * plan.batch : (k + 1) * plan.batch]
                self.pictures.copy_(self._batch(chosen))
                self.labels.copy_(self.y[chosen])
                if self.graph is None:
                    self._step()
                else:
                    self.graph.replay()
                done += 1
            if epochs is not None:
                epochs.append(self._answers())
        return np.asarray(self._answers().cpu().numpy())


def pictures(X: np.ndarray) -> torch.Tensor:
    tensor = torch.from_numpy(X.astype(np.float32) / 255.0)
    tensor = tensor[:, None] if tensor.ndim == 3 else tensor.permute(0, 3, 1, 2)
    tensor = (tensor - tensor.mean((0, 2, 3), keepdim=True)) / tensor.std((0, 2, 3), keepdim=True)
    return tensor.to(DEVICE, memory_format=torch.channels_last)


def probe_features(arrays: dict[str, np.ndarray], data: str) -> np.ndarray:
    """The last hidden layer of a network trained on other pictures of the same two classes."""
    X, y = pictures(arrays["cifar_other_X"]), torch.from_numpy(arrays["cifar_other_y"]).to(DEVICE)
    step = TrainingStep(Convolutional(resnet, epochs=20, batch=100, rate=0.05), X, y)
    step.fit(np.ones(len(X), bool), seed=5)
    body = step.net[:-1].eval()
    with torch.no_grad():
        parts = [body(part).float() for part in pictures(arrays[f"{data}_X"]).split(1000)]
    features = torch.cat(parts).cpu().numpy()
    return np.asarray((features - features.mean(0)) / (features.std(0) + 1e-6), np.float32)


Plan = Perceptron | Convolutional
TRUTHS: dict[str, tuple[str, Plan]] = {
    "adult_mlp_short": ("adult", Perceptron((128,), 5, 100)),
    "adult_mlp_long": ("adult", Perceptron((128,), 60, 100)),
    "digits_mlp_short": ("digits", Perceptron((64,), 8, 50)),
    "digits_mlp_long": ("digits", Perceptron((64,), 100, 50)),
    "location_mlp_short": ("location", Perceptron((256,), 8, 125)),
    "location_mlp_deep": ("location", Perceptron((128, 128), 40, 125)),
    "cifar_probe_short": ("probe", Perceptron((), 3, 100, rate=3e-3)),
    "cifar_probe_long": ("probe", Perceptron((), 60, 100, rate=1e-2)),
    "fashion_cnn_short": ("fashion", Convolutional(cnn, 6, 100, 0.05)),
    "fashion_cnn_long": ("fashion", Convolutional(cnn, 25, 100, 0.05)),
    "cifar_resnet_short": ("cifar", Convolutional(resnet, 6, 150, 0.05)),
    "cifar_resnet_long": ("cifar", Convolutional(resnet, 24, 150, 0.05)),
    # Made when the estimator's first form was there, and kept unseen until its last.
    "test_adult_dropout_short": ("adult_test", Perceptron((64, 64), 10, 50, dropout=0.3)),
    "test_adult_dropout_long": ("adult_test", Perceptron((64, 64), 80, 50, dropout=0.3)),
    "test_fashion_mlp_short": ("fashion_test", Perceptron((256,), 8, 50)),
    "test_fashion_mlp_long": ("fashion_test", Perceptron((256,), 60, 50)),
    "test_location_wide_short": ("location_half", Perceptron((512,), 12, 50, decay=0.1)),
    "test_location_wide_long": ("location_half", Perceptron((512,), 80, 50, decay=0.1)),
    "test_cifar_probe_short": ("probe_test", Perceptron((), 10, 50, rate=3e-3, decay=0.1)),
    "test_cifar_probe_long": ("probe_test", Perceptron((), 80, 50, rate=1e-2, decay=0.1)),
    "test_digits_cnn_short": ("digits", Convolutional(small_cnn, 6, 64, 0.05)),
    "test_digits_cnn_long": ("digits", Convolutional(small_cnn, 30, 64, 0.05)),
    "test_cifar_augmented_short": (
        "cifar_test",
        Convolutional(resnet, 12, 125, 0.05, augmented=True),
    ),
    "test_cifar_augmented_long": (
        "cifar_test",
        Convolutional(resnet, 40, 125, 0.05, augmented=True),
    ),
}
PROBES = {"probe": "cifar", "probe_test": "cifar_test"}


def inputs(plan: Plan, data: str, arrays: dict[str, np.ndarray]) -> torch.Tensor:
    if data in PROBES:
        return torch.from_numpy(probe_features(arrays, PROBES[data])).to(DEVICE)
    X = arrays[f"{data}_X"]
    if isinstance(plan, Convolutional):
        return pictures(X.reshape(-1, 8, 8) * 255.0 if data == "digits" else X)
    X = X.reshape(len(X), -1).astype(np.float32)
    return torch.from_numpy(X / 255.0 if data.startswith("fashion") else X).to(DEVICE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("truths"))
    parser.add_argument("--models", type=int, default=256)
    parser.add_argument("--only", nargs="*", default=list(TRUTHS), choices=list(TRUTHS))
    parser.add_argument("--records", type=int, help="only the first so many, for a trial")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    torch.backends.cuda.matmul.allow_tf32 = True
    with np.load(given.data) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for number, name in enumerate(TRUTHS):
        if name not in given.only:
            continue
        data, plan = TRUTHS[name]
        start = time.perf_counter()
        X = inputs(plan, data, arrays)[: given.records]
        y = torch.from_numpy(arrays[f"{PROBES.get(data, data)}_y"]).to(DEVICE)[: given.records]
        mask = halves(given.models, len(X), seed=1000 + number)
        found, ranges = plan.train(X, y, mask, seed=2000 + number)
        write_truth(given.out / f"{name}.npz", found, mask, data, trace_iqr=ranges)
        right = found > 0
        print(
            f"{name:20} {found.shape[0]} models x {found.shape[1]} records, accuracy in "
            f"{right[mask].mean():.3f} out {right[~mask].mean():.3f}, finite "
            f"{np.isfinite(found).all() and np.isfinite(ranges).all()}, "
            f"{time.perf_counter() - start:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
