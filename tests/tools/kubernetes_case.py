"""A real Kubernetes for the tests of the command: two nodes, an image with the command, the driver's account."""
import ssl
import tempfile
import urllib.request

from support import *

TESTK8S = ROOT / "tests/support/k8s/testk8s"
IMAGE = "hypertune.test/hypertune:1"


class KubernetesCase(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.place = tempfile.TemporaryDirectory(prefix="ht")
        cls.addClassCleanup(cls.place.cleanup)
        cls.state = pathlib.Path(cls.place.name) / "k"
        cls.addClassCleanup(lambda: cls.kubernetes("down"))
        done = cls.kubernetes("up", 2, "--owner", os.getpid())
        if done.returncode == 3:
            raise unittest.SkipTest(done.stderr.strip())
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        busybox = shutil.which("busybox")
        if not busybox:
            raise unittest.SkipTest("Kubernetes: there is no busybox (Debian's package busybox-static)")
        names = subprocess.run([busybox, "--list"], capture_output=True, text=True).stdout.split()
        program = pathlib.Path(cls.place.name) / "hypertune"
        subprocess.run(["strip", "-o", program, os.environ["HYPERTUNE"]], check=True)
        tar = pathlib.Path(cls.place.name) / "image.tar"
        for words in (("image", tar, IMAGE, f"{busybox}:/bin/busybox", f"{program}:/usr/bin/hypertune",
                       *[f"/bin/busybox@/bin/{name}" for name in names if name != "busybox"], "--", "/bin/sh"),
                      ("load", tar), ("apply", ROOT / "deploy/kubernetes/driver.yaml")):
            done = cls.kubernetes(*words)
            if done.returncode != 0:
                raise RuntimeError(done.stderr)

    @classmethod
    def kubernetes(cls, *words):
        return subprocess.run([str(TESTK8S), str(cls.state), *map(str, words)], capture_output=True, text=True)

    @classmethod
    def ask(cls, path, method="GET", body=None, kind="application/json", read=json.load):
        facts, pki = json.loads((cls.state / "facts.json").read_text()), cls.state / "pki"
        context = ssl.create_default_context(cafile=pki / "ca.crt")
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        request = urllib.request.Request(f"https://{facts['ip']}:6443/{path}", method=method,
                                         data=json.dumps(body).encode() if body else None,
                                         headers={"Content-Type": kind})
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            return read(answer)

    def objects(self, kind, group="api/v1"):
        return self.ask(f"{group}/namespaces/default/{kind}")["items"]

    @classmethod
    def make_volume(cls, name, folder):
        """A volume and a claim of this name, which all nodes reach, as they are on one machine."""
        spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        cls.ask("api/v1/persistentvolumes", "POST", {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {**spec, "capacity": {"storage": "1Gi"}, "hostPath": {"path": str(folder)}}})
        cls.ask("api/v1/namespaces/default/persistentvolumeclaims", "POST", {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {**spec, "volumeName": name, "resources": {"requests": {"storage": "1Gi"}}}})

    def delete(self, pod, grace):
        self.ask(f"api/v1/namespaces/default/pods/{pod}?gracePeriodSeconds={grace}", "DELETE")


__all__ = ["IMAGE", "KubernetesCase", "TESTK8S", "ssl"]
