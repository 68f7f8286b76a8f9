"""hypertune serve as a Deployment behind a Service: deploy/kubernetes/serve.yaml, with only what is marked CHANGE changed."""
import base64
import secrets
import threading
import urllib.error

from kubernetes_case import IMAGE
from served import *
from support import *

MANIFEST = ROOT / "deploy/kubernetes/serve.yaml"
DEPLOYMENT = "apis/apps/v1/namespaces/default/deployments/hypertune-serve"
ENDPOINTS = "apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name=hypertune-serve"


class ServingInCluster:
    """For a class of KubernetesCase."""

    def manifest(self, *changes):
        text = MANIFEST.read_text()
        for old, new in (("registry.example/lab/serve:1 ", IMAGE + " "), ("- python3\n", "- sh\n"),
                         ("/app/answer.py", "/experiments/answer.sh"), *changes):
            self.assertEqual(text.count(old), 1, old)
            text = text.replace(old, new)
        (self.folder / "serve.yaml").write_text(text)
        done = self.kubernetes("apply", self.folder / "serve.yaml")
        self.assertEqual(done.returncode, 0, done.stderr)

    def serving_pods(self):
        """Those that are not told to end."""
        pods = self.ask("api/v1/namespaces/default/pods?labelSelector=app=hypertune-serve")["items"]
        return {pod["metadata"]["name"]: pod for pod in pods if "deletionTimestamp" not in pod["metadata"]}

    def endpoints(self):
        """Addresses of the Service's EndpointSlice: those that are ready, and all. Here is no kube-proxy: a client takes one of
        them, as a node's rules for the Service's address would."""
        found = [(endpoint["addresses"][0], slice["ports"][0]["port"], endpoint["conditions"].get("ready", False))
                 for slice in self.ask(ENDPOINTS)["items"] for endpoint in slice.get("endpoints") or []]
        return [(address, port) for address, port, ready in found if ready], found

    def server_of(self, pod):
        """The process of this machine that is the server of a pod."""
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and f"HOSTNAME={pod}".encode() in (entry / "environ").read_bytes().split(b"\0") and \
                        (entry / "cmdline").read_bytes().startswith(b"hypertune\0serve\0") and \
                        "\nNSpid:" in (status := (entry / "status").read_text()) and \
                        status.split("\nNSpid:")[1].splitlines()[0].split()[-1] == "1":
                    return int(entry.name)
            except OSError:
                pass
        return None

    def available(self):
        state = self.ask(DEPLOYMENT)
        status = state["status"]
        return status.get("observedGeneration") == state["metadata"]["generation"] and \
            [status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas", "unavailableReplicas")] == [2, 2, 2, 0]

    def prepare_serving(self):
        volume = pathlib.Path(self.place.name) / "experiments"
        make_served(self, volume)
        (volume / "begin").unlink()
        self.make_volume("experiments", volume)
        # As the comment of the manifest says it.
        key, certificate, token = self.folder / "tls.key", self.folder / "tls.crt", secrets.token_hex(32)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
                        "365", "-keyout", key, "-out", certificate, "-subj", "/CN=hypertune-serve", "-addext",
                        "subjectAltName=DNS:hypertune-serve,DNS:hypertune-serve.default.svc"], check=True, capture_output=True)
        encoded = lambda data: base64.b64encode(data).decode()
        for name, kind, data in (("token", "Opaque", {"token": token.encode()}),
                                 ("tls", "kubernetes.io/tls", {"tls.crt": certificate.read_bytes(), "tls.key": key.read_bytes()})):
            self.ask("api/v1/namespaces/default/secrets", "POST", {
                "apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": {"name": f"hypertune-serve-{name}"},
                "data": {key: encoded(value) for key, value in data.items()}})
        return volume, Client(certificate, token)

    def remove_serving(self):
        for path in (DEPLOYMENT, "api/v1/namespaces/default/services/hypertune-serve",
                     "api/v1/namespaces/default/secrets/hypertune-serve-token", "api/v1/namespaces/default/secrets/hypertune-serve-tls"):
            try:
                self.ask(f"{path}?propagationPolicy=Background", "DELETE")
            except urllib.error.HTTPError:
                pass
        for pod in self.ask("api/v1/namespaces/default/pods?labelSelector=app=hypertune-serve")["items"]:
            try:
                self.delete(pod["metadata"]["name"], 0)
            except urllib.error.HTTPError:
                pass
        for path in ("api/v1/namespaces/default/persistentvolumeclaims/experiments", "api/v1/persistentvolumes/experiments"):
            try:
                self.ask(path, "DELETE")
            except urllib.error.HTTPError:
                pass
        wait_until(lambda: not self.objects("pods"), "the end of the pods")

    def test_a_model_served_by_a_deployment(self):
        self.addCleanup(self.remove_serving)
        volume, client = self.prepare_serving()
        self.manifest()

        # Both pods have started and are alive, and get no requests: their model is not ready.
        def started():
            pods = self.serving_pods().values()
            return len(pods) == 2 and all(each.get("started") for pod in pods for each in pod["status"].get("containerStatuses", [{}]))
        wait_until(started, "the servers")
        wait_until(lambda: len(self.endpoints()[1]) == 2, "the Service's endpoints")
        ready, found = self.endpoints()
        self.assertEqual(ready, [])
        self.assertEqual({address for address, _, _ in found}, {pod["status"]["podIP"] for pod in self.serving_pods().values()})
        at = found[0][:2]
        self.assertEqual([client.ask(at, "GET", f"/v2/health/{what}", headers={})[0] for what in ("live", "ready")], [200, 503])
        self.assertEqual(client.predict(at, 8)[0], 503)
        self.assertFalse(self.available())
        (volume / "begin").touch()
        wait_until(self.available, "the Deployment")
        wait_until(lambda: len(self.endpoints()[0]) == 2, "both pods behind the Service")
        self.assertEqual(client.predict(at, 8), (200, {"y": [1008]}))
        self.assertEqual(client.predict(at, 8, headers={})[0], 401)
        self.assertEqual(client.ask(at, "GET", "/v2/models/digits")[1]["name"], "digits")

        # What a node's rules for the Service are made of, a moment late.
        behind, over = [self.endpoints()[0]], threading.Event()

        def follow():
            while not over.wait(0.3):
                behind[0] = self.endpoints()[0]
        follower = threading.Thread(target=follow)
        follower.start()
        try:
            with Load(client, lambda: behind[0]) as load:
                self.kill_a_server(load, client)
                cut = len(load.cut)
                self.delete_a_pod(load, client, volume)
                self.update(load)
            self.assertEqual(load.wrong, [])
            self.assertEqual(load.cut[cut:], [])
        finally:
            over.set()
            follower.join()

    def kill_a_server(self, load, client):
        """As when its memory is used up: kubelet starts it again, and the other pod answers meanwhile."""
        load.more(20)
        name, pod = sorted(self.serving_pods().items())[0]
        at = (pod["status"]["podIP"], 8443)
        os.kill(wait_until(lambda: self.server_of(name), "the server's process"), signal.SIGKILL)
        restarts = lambda: self.serving_pods()[name]["status"]["containerStatuses"][0]
        wait_until(lambda: restarts()["restartCount"] == 1 and restarts()["ready"], "the server that was started again")
        self.assertEqual({place for place, _ in load.cut} - {at}, set())
        wait_until(lambda: at in load.places(), "the pod behind the Service")
        load.more(20)

    def delete_a_pod(self, load, client, volume):
        """What it was asked before is answered; the Service has another one before it ends."""
        name, pod = sorted(self.serving_pods().items())[0]
        at = (pod["status"]["podIP"], 8443)
        slow = in_background(lambda: client.predict(at, 7))
        log = lambda: self.ask(f"api/v1/namespaces/default/pods/{name}/log", read=lambda answer: answer.read().decode())
        wait_until(lambda: "seven is asked" in log(), "the request")
        self.delete(name, 45)
        wait_until(lambda: not client.accepts(at), "that the pod accepts nobody")
        (volume / "release").touch()
        self.assertEqual(slow(), (200, {"y": [1007]}))
        wait_until(self.available, "another pod")
        load.more(20)

    def update(self, load):
        before = set(self.serving_pods())
        self.manifest(("--max-replicas=2\n", "--max-replicas=1\n"))
        wait_until(self.available, "the new version of the Deployment", 180)
        left = lambda: {pod["metadata"]["name"] for pod in self.objects("pods")}
        wait_until(lambda: not left() & before, "the end of the old pods", 120)
        load.more(20)


__all__ = ["ServingInCluster"]
