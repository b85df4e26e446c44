#!/usr/bin/env python3
"""sbom.py VERSION <Cargo.lock: what a binary of this version is made of, as SPDX 2.3 in JSON.

The lock file has every crate with the digest of its archive, those included that only other platforms or tests use.
Nothing in the output depends on the time or the machine.
"""

import hashlib
import json
import sys
import tomllib


def identifier(name: str, version: str) -> str:
    return "SPDXRef-" + f"{name}-{version}".replace("_", "-").replace("+", "-")


def package(crate: dict) -> dict:
    name, version = crate["name"], crate["version"]
    entry = {
        "SPDXID": identifier(name, version),
        "name": name,
        "versionInfo": version,
        "filesAnalyzed": False,
        "downloadLocation": f"https://crates.io/api/v1/crates/{name}/{version}/download" if "source" in crate else "NOASSERTION",
        "externalRefs": [
            {
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": f"pkg:cargo/{name}@{version}",
            }
        ],
    }
    if "checksum" in crate:
        entry["checksums"] = [{"algorithm": "SHA256", "checksumValue": crate["checksum"]}]
    return entry


def main() -> None:
    version, lock = sys.argv[1], sys.stdin.buffer.read()
    crates = tomllib.loads(lock.decode())["package"]
    digest = hashlib.sha256(lock).hexdigest()
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"rayfit-{version}",
        "documentNamespace": f"https://rayfit.dev/spdx/{version}/{digest}",
        "creationInfo": {"created": "1970-01-01T00:00:00Z", "creators": ["Tool: scripts/sbom.py"]},
        "packages": [package(crate) for crate in crates],
        "relationships": [
            {
                "spdxElementId": "SPDXRef-DOCUMENT",
                "relationshipType": "DESCRIBES",
                "relatedSpdxElement": identifier("rayfit", version),
            }
        ],
    }
    json.dump(document, sys.stdout, indent=1)
    print()


main()
