"""Who may do what in testk8s: manifests are applied, and accounts made that may do what a line says."""
import json
import re
import urllib.parse

from common import CannotBeHad, wait_until

# Where objects of a kind are, below their group: only of those that the tests and the shipped manifests have.
PLACES = {"ServiceAccount": "serviceaccounts", "Role": "roles", "RoleBinding": "rolebindings", "Secret": "secrets",
          "NetworkPolicy": "networkpolicies", "Job": "jobs", "Pod": "pods", "ResourceQuota": "resourcequotas",
          "PersistentVolumeClaim": "persistentvolumeclaims", "ConfigMap": "configmaps", "LimitRange": "limitranges",
          "Deployment": "deployments", "Service": "services"}
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/{}"


def done(cluster, what, path, method, body, kind="application/json"):
    """The object that the API server answers with."""
    answer = cluster.ask(path, method, body, kind)
    if answer is None:
        raise CannotBeHad(f"{what}: the API server does not answer")
    status, text = answer
    if status >= 300:
        try:
            text = json.loads(text)["message"]
        except (ValueError, KeyError):
            pass
        raise CannotBeHad(f"{what}: {status} {text}")
    return json.loads(text)


def is_there(cluster, path):
    answer = cluster.ask(path)
    if answer is None:
        raise CannotBeHad("the API server does not answer")
    return answer[0] == 200


def put(cluster, namespace, text):
    """One object of YAML or JSON, made or changed. The API server reads it, so that nothing else has to."""
    found = {key: re.search(rf"^{key}:\s*(\S+)\s*$", text, re.M) for key in ("apiVersion", "kind")}
    name = re.search(r"^metadata:(?:\s*\{|\s*\n(?:[ ]+.*\n)*?[ ]+)\s*name:\s*([^\s,}]+)", text, re.M)
    if not name or not all(found.values()):
        raise CannotBeHad(f"no apiVersion, kind and metadata.name in: {text[:200]}")
    version, kind = (found[key].group(1) for key in ("apiVersion", "kind"))
    if kind not in PLACES:
        raise CannotBeHad(f"testk8s does not know where a {kind} goes")
    place = f"/{'apis' if '/' in version else 'api'}/{version}/namespaces/{namespace}/{PLACES[kind]}/{name.group(1)}"
    return done(cluster, f"{kind} {name.group(1)}", f"{place}?fieldManager=testk8s&force=true", "PATCH", text.encode(),
                "application/apply-patch+yaml")


def apply(cluster, namespace, files):
    """Every object of these files of YAML, as by `kubectl apply -n NAMESPACE -f`."""
    make_namespace(cluster, namespace)
    for file in files:
        with open(file, encoding="utf-8") as stream:
            for text in re.split(r"^---.*\n", stream.read(), flags=re.M):
                if re.search(r"^[^#\s]", text, re.M):
                    put(cluster, namespace, text)


def make_namespace(cluster, namespace):
    if not is_there(cluster, f"/api/v1/namespaces/{namespace}"):
        body = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        done(cluster, f"namespace {namespace}", "/api/v1/namespaces", "POST", body)
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    wait_until(lambda: is_there(cluster, path), f"the default account of namespace {namespace}", 30)


def rule(text):
    """"get,create:pods/exec" or "create:jobs@batch"."""
    match = re.fullmatch(r"([a-z*,]+):([a-z/*,]+)(?:@([a-z0-9.]+))?", text)
    if not match:
        raise CannotBeHad(f"'{text}' is no rule: VERB,…:RESOURCE,…[@GROUP], e.g. get,create:pods/exec or create:jobs@batch")
    return {"verbs": match[1].split(","), "resources": match[2].split(","), "apiGroups": [match[3] or ""]}


def make_user(cluster, namespace, name, rules):
    """A service account that may do this, and nothing else; the place of a kubeconfig with its token. Without rules: those
    that it has already, or none."""
    make_namespace(cluster, namespace)
    base = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    if not is_there(cluster, f"{base}/{name}"):
        done(cluster, f"account {name}", base, "POST",
             json.dumps({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}))
    if rules:
        group = "rbac.authorization.k8s.io"
        objects = {
            "roles": {"kind": "Role", "rules": [rule(text) for text in rules]},
            "rolebindings": {"kind": "RoleBinding",
                             "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
                             "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]}}
        for place, spec in objects.items():
            body = {"apiVersion": f"{group}/v1", "metadata": {"name": name}, **spec}
            done(cluster, f"{spec['kind']} {name}", RBAC.format(namespace, place) + f"/{name}?fieldManager=testk8s&force=true",
                 "PATCH", json.dumps(body), "application/apply-patch+yaml")
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400}}
    token = done(cluster, f"token of {name}", f"{base}/{urllib.parse.quote(name)}/token", "POST", json.dumps(request))
    return cluster.write_config(f"{namespace}.{name}", {"token": token["status"]["token"]}, namespace)
