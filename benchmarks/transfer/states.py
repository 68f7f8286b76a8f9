"""Makes pairs of real training states, FOLDER/NAME/old and FOLDER/NAME/new, for `benchmark_transfer --states FOLDER`.

The second is what the same trainer saves some time after the first. Each library writes it with its own function, all in
one file, as its users do. A library that is not installed is left out.
    pip install torch xgboost-cpu lightgbm scikit-learn joblib numpy
    states.py FOLDER
"""
import pathlib
import sys

import numpy

random = numpy.random.default_rng(1)


def both(root, name, save):
    for when in ("old", "new"):
        folder = root / name / when
        folder.mkdir(parents=True)
        save(folder)
    print(name, flush=True)


def torch_states(root):
    import torch

    torch.manual_seed(1)
    inputs, targets = torch.randn(4096, 256), torch.randint(0, 10, (4096,))

    def network():
        return torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024),
                                   torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))

    def states(name, optimizer_of, trained):
        model = network()
        for parameter in list(model.parameters())[:-trained]:
            parameter.requires_grad = False
        optimizer = optimizer_of([p for p in model.parameters() if p.requires_grad])

        def save(folder):
            for first in range(0, len(inputs), 128):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(inputs[first:first + 128]), targets[first:first + 128]).backward()
                optimizer.step()
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, folder / "state.pt")

        both(root, name, save)

    states("PyTorch, Adam, all layers trained", lambda p: torch.optim.Adam(p), 8)
    states("PyTorch, SGD with momentum, all layers trained", lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9), 8)
    states("PyTorch, Adam, the last layer trained (fine-tuning)", lambda p: torch.optim.Adam(p), 2)

    # A replay buffer that is filled in turn, beside a small policy.
    buffer, at = numpy.zeros((100_000, 32), numpy.float32), [0]
    policy = torch.nn.Linear(32, 4)

    def save(folder):
        rows = slice(at[0], at[0] + 10_000)
        buffer[rows] = random.normal(size=(10_000, 32))
        at[0] += 10_000
        torch.save({"policy": policy.state_dict(), "replay": torch.from_numpy(buffer.copy())}, folder / "state.pt")

    for _ in range(8):
        buffer[at[0]:at[0] + 10_000] = random.normal(size=(10_000, 32))
        at[0] += 10_000
    both(root, "PyTorch, a policy with its replay buffer, a tenth of it new", save)


def boosted_states(root):
    data = random.normal(size=(20_000, 30))
    target = (data[:, :5].sum(axis=1) + random.normal(size=20_000) > 0).astype(int)
    try:
        import xgboost

        matrix, model = xgboost.DMatrix(data, target), [None]

        def save(folder, kind):
            model[0] = xgboost.train({"objective": "binary:logistic", "max_depth": 8, "nthread": 1}, matrix, 100,
                                     xgb_model=model[0])
            model[0].save_model(folder / f"model.{kind}")

        for kind in ("ubj", "json"):
            model[0] = None
            both(root, f"XGBoost, 100 trees and 100 more, {kind}", lambda folder, kind=kind: save(folder, kind))
    except ImportError:
        print("no xgboost")
    try:
        import lightgbm

        booster = [None]

        def save_light(folder):
            booster[0] = lightgbm.train({"objective": "binary", "num_leaves": 127, "verbose": -1, "num_threads": 1},
                                        lightgbm.Dataset(data, target), 100, init_model=booster[0])
            booster[0].save_model(folder / "model.txt")

        both(root, "LightGBM, 100 trees and 100 more", save_light)
    except ImportError:
        print("no lightgbm")
    try:
        import joblib
        from sklearn.ensemble import RandomForestClassifier

        forest = RandomForestClassifier(0, warm_start=True, max_depth=12, random_state=1)

        def save_forest(folder):
            forest.n_estimators += 50
            forest.fit(data, target)
            joblib.dump(forest, folder / "forest.joblib")

        both(root, "scikit-learn, a forest of 50 trees and 50 more (joblib)", save_forest)
    except ImportError:
        print("no scikit-learn")


if __name__ == "__main__":
    place = pathlib.Path(sys.argv[1])
    try:
        torch_states(place)
    except ImportError:
        print("no torch")
    boosted_states(place)
