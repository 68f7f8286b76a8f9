"""Calls of the API server as the account of one of testk8s's kubeconfigs (which are JSON)."""
import http.client
import json
import ssl
import urllib.parse


def ask(config, path, method="GET", body=None, kind="application/json", at=None):
    """Status and body; None: no answer. `at`: (host, port) of another server that knows the account, such as a kubelet."""
    with open(config, encoding="utf-8") as file:
        read = json.load(file)
    cluster, user = read["clusters"][0]["cluster"], read["users"][0]["user"]
    context = ssl.create_default_context(cafile=cluster["certificate-authority"])
    headers = {"Content-Type": kind, "User-Agent": "testk8s"}
    if "token" in user:
        headers["Authorization"] = f"Bearer {user['token']}"
    else:
        context.load_cert_chain(user["client-certificate"], user["client-key"])
    server = urllib.parse.urlsplit(cluster["server"])
    host, port = at or (server.hostname, server.port)
    connection = http.client.HTTPSConnection(host, port, context=context, timeout=10)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
