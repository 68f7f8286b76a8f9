"""A container image of files of this machine, as a tar that containerd imports: no registry, no daemon."""
import hashlib
import io
import json
import os
import re
import subprocess
import tarfile


def write_image(out, name, files, entrypoint, links=()):
    """`files`: pairs of a file here and its place there. A program brings the shared libraries along that it needs.
    `links`: pairs of a place there and a symbolic link to it."""
    content = io.BytesIO()
    added = set()
    with tarfile.open(fileobj=content, mode="w") as layer:
        def add(source, target):
            if target not in added:
                added.add(target)
                layer.add(os.path.realpath(source), target.lstrip("/"))

        for source, target in files:
            add(source, target)
            with open(source, "rb") as file:
                if file.read(4) != b"\x7fELF":
                    continue
            libraries = subprocess.run(["ldd", source], capture_output=True, text=True).stdout
            for library in re.findall(r"(/\S+)", libraries):
                add(library, library)
        for target, link in links:
            entry = tarfile.TarInfo(link.lstrip("/"))
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            layer.addfile(entry)
        for folder in ("tmp", "root"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777
            layer.addfile(entry)
    data = content.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    config = json.dumps({
        "architecture": "amd64", "os": "linux",
        "config": {"Entrypoint": entrypoint, "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}}).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [name], "Layers": [f"{digest}/layer.tar"]}]).encode()
    with tarfile.open(out, "w") as archive:
        for path, blob in ((config_name, config), (f"{digest}/layer.tar", data), ("manifest.json", manifest)):
            entry = tarfile.TarInfo(path)
            entry.size = len(blob)
            archive.addfile(entry, io.BytesIO(blob))
