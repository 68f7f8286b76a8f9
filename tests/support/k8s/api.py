"""Calls of the API server as the account of one of testk8s's kubeconfigs (which are JSON)."""
import http.client
import json
import ssl
import urllib.parse


class Session:
    """One connection, opened when it is needed, for calls one after the other."""

    def __init__(self, config, at=None, agent="testk8s", timeout=10):
        """`at`: (host, port) of another server that knows the account, such as a kubelet."""
        with open(config, encoding="utf-8") as file:
            read = json.load(file)
        cluster, user = read["clusters"][0]["cluster"], read["users"][0]["user"]
        context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self.headers = {"User-Agent": agent}
        if "token" in user:
            self.headers["Authorization"] = f"Bearer {user['token']}"
        else:
            context.load_cert_chain(user["client-certificate"], user["client-key"])
        server = urllib.parse.urlsplit(cluster["server"])
        host, port = at or (server.hostname, server.port)
        self.connection = http.client.HTTPSConnection(host, port, context=context, timeout=timeout)

    def ask(self, path, method="GET", body=None, kind="application/json"):
        """Status and body; None: no answer."""
        try:
            self.connection.request(method, path, body, {**self.headers, "Content-Type": kind})
            answer = self.connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            return None

    def close(self):
        self.connection.close()


def ask(config, *what, at=None):
    """One call: status and body; None: no answer."""
    session = Session(config, at)
    try:
        return session.ask(*what)
    finally:
        session.close()
