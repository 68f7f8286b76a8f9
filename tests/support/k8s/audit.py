"""What was asked of testk8s's API server, from its audit log."""
import collections
import json


def calls(log, of=""):
    """How often each (user agent, verb, resource, answer) occurs; `of`: how the user agent begins. A watch counts once."""
    seen, counts = set(), collections.Counter()
    with open(log, encoding="utf-8") as lines:
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:  # the last line of a server that was killed
                continue
            agent = event.get("userAgent", "").split(" ")[0]
            if event["auditID"] in seen or not agent.startswith(of):
                continue
            seen.add(event["auditID"])
            about = event.get("objectRef", {})
            what = "/".join(filter(None, (about.get("resource"), about.get("subresource")))) or event["requestURI"]
            counts[agent, event["verb"], what, event.get("responseStatus", {}).get("code", 0)] += 1
    return counts
