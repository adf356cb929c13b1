"""What deploy/k8s promises, read without a cluster: schemas, commands, rights, ways of the network."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import jsonschema
import kubernetes_validate
import pytest
import yaml

from stega.database import vanishing
from stega.installation.privileges import KINDS
from stega.processes.procfile import commands

ROOT = Path(__file__).parents[1]
K8S = ROOT / "deploy" / "k8s"
FOLDERS = [K8S / "base", K8S / "databases", K8S / "overlays" / "production"]
VERSION = "1.33"
PROCESSES = {
    "web": ("web", "web"),
    "console": ("web", "console"),
    "task-worker": ("tasks", "tasks"),
    "ticker": ("ticker", "ticker"),
    "notification-worker": ("notifications", "notifications"),
    "sla-breach-worker": ("sla", "sla"),
}
"""Deployment -> its line of the Procfile, and the kind of its database role."""

CLUSTERS = {"db-app": "default", "db-jobs": "jobs", "db-events": "events"}

NAME = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}},
    "additionalProperties": False,
}
KEY = {
    "type": "object",
    "required": ["name", "key"],
    "properties": {"name": {"type": "string"}, "key": {"type": "string"}},
    "additionalProperties": False,
}
TEXTS = {"type": "array", "items": {"type": "string"}}


def exactly(required, **properties):
    """An object of these fields and no others."""
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


OPERATORS_OWN = {
    "Cluster": exactly(
        ["instances", "storage", "bootstrap", "managed", "plugins"],
        instances={"type": "integer", "minimum": 1},
        imageName={"type": "string"},
        storage=exactly(["size"], size={"type": "string", "pattern": r"^\d+Gi$"}),
        resources={"type": "object"},
        postgresql=exactly(
            [],
            parameters={"type": "object", "additionalProperties": {"type": "string"}},
            synchronous=exactly(
                ["method", "number"], method={"enum": ["any", "first"]}, number={"type": "integer", "minimum": 1}
            ),
        ),
        bootstrap=exactly(
            ["initdb"],
            initdb=exactly(
                ["database", "owner"],
                database={"type": "string"},
                owner={"type": "string"},
                postInitApplicationSQL=TEXTS,
            ),
        ),
        managed=exactly(
            ["roles"],
            roles={
                "type": "array",
                "items": exactly(
                    ["name"],
                    name={"type": "string"},
                    login={"type": "boolean"},
                    passwordSecret=NAME,
                    inRoles=TEXTS,
                ),
            },
        ),
        plugins={
            "type": "array",
            "items": exactly(
                ["name", "isWALArchiver", "parameters"],
                name={"const": "barman-cloud.cloudnative-pg.io"},
                isWALArchiver={"const": True},
                parameters=exactly(["barmanObjectName"], barmanObjectName={"type": "string"}),
            ),
        },
    ),
    "ScheduledBackup": exactly(
        ["schedule", "cluster", "method", "pluginConfiguration"],
        schedule={"type": "string", "pattern": r"^(\S+ ){5}\S+$"},
        immediate={"type": "boolean"},
        backupOwnerReference={"enum": ["none", "self", "cluster"]},
        cluster=NAME,
        method={"const": "plugin"},
        pluginConfiguration=NAME,
    ),
    "ObjectStore": exactly(
        ["configuration"],
        retentionPolicy={"type": "string", "pattern": r"^[1-9]\d*[dwm]$"},
        configuration=exactly(
            ["destinationPath", "s3Credentials"],
            destinationPath={"type": "string"},
            endpointURL={"type": "string"},
            s3Credentials=exactly(["accessKeyId", "secretAccessKey"], accessKeyId=KEY, secretAccessKey=KEY),
            wal=exactly([], compression={"enum": ["gzip", "bzip2", "lz4", "snappy", "xz", "zstd"]}),
        ),
    ),
}
"""The fields that are used of CloudNativePG's resources: written by hand, since its own schemas come in no package."""


def documents(folder):
    for path in sorted(folder.glob("*.yaml")):
        yield from (document for document in yaml.safe_load_all(path.read_text()) if document)


RESOURCES = [d for folder in FOLDERS for d in documents(folder) if d["kind"] != "Kustomization"]
KUSTOMIZATIONS = {folder: yaml.safe_load((folder / "kustomization.yaml").read_text()) for folder in FOLDERS}


def of_kind(kind):
    return {resource["metadata"]["name"]: resource for resource in RESOURCES if resource["kind"] == kind}


DEPLOYMENTS = of_kind("Deployment")
PODS = {name: each["spec"]["template"]["spec"] for name, each in (DEPLOYMENTS | of_kind("Job")).items()}
CONTAINERS = [
    pytest.param(pod, container, id=f"{name}-{container['name']}")
    for name, pod in PODS.items()
    for container in (*pod["initContainers"], *pod["containers"])
]


def main_container(name):
    (container,) = PODS[name]["containers"]
    return container


def validate(resource):
    if resource["kind"] in OPERATORS_OWN:
        jsonschema.validate(resource["spec"], OPERATORS_OWN[resource["kind"]])
    else:
        kubernetes_validate.validate(resource, VERSION, strict=True)


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda r: f"{r['kind']}-{r['metadata']['name']}")
def test_every_manifest_fits_its_schema(resource):
    validate(resource)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_what_kustomize_renders_fits_too_and_is_all_in_one_namespace():
    command = ["kubectl", "kustomize", str(K8S / "overlays" / "production")]

    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    rendered = list(yaml.safe_load_all(done.stdout))

    assert len(rendered) == len(RESOURCES)
    for resource in rendered:
        validate(resource)
        assert resource["kind"] == "Namespace" or resource["metadata"]["namespace"] == "stega"
    images = set(re.findall(r"image: (\S+)", done.stdout))
    assert images == {"registry.example.com/stega:0.1.0"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_file_is_applied(folder):
    listed = {name for name in KUSTOMIZATIONS[folder]["resources"] if name.endswith(".yaml")}

    assert listed == {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"}


def test_every_process_of_the_procfile_is_deployed_with_its_command():
    local = commands(ROOT / "Procfile", {})
    everywhere = {"127.0.0.1:$PORT": "0.0.0.0:8000"}

    deployed = {name: main_container(name)["command"] for name in DEPLOYMENTS}

    assert {line for line, _ in PROCESSES.values()} == set(local)
    assert deployed == {
        name: [everywhere.get(word, word) for word in shlex.split(local[line])] for name, (line, _) in PROCESSES.items()
    }


def test_the_job_prepares_what_compose_prepares_and_the_roles():
    services = yaml.safe_load((ROOT / "compose.yml").read_text())["services"]
    script = " && ".join(services[name]["command"][2] for name in ("migrate", "bootstrap"))
    job = PODS["bootstrap"]

    steps = [shlex.join(step["command"]) for step in (*job["initContainers"], *job["containers"])]

    assert {*script.replace("exec ", "").split(" && "), "python manage.py provision_roles"} == set(steps)


def test_the_migrations_that_the_others_wait_for_come_after_all_that_needs_no_table_of_theirs():
    steps = [step["name"] for step in PODS["bootstrap"]["initContainers"]]

    assert steps == ["migrate-jobs", "events", "migrate", "roles"]


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_a_process_starts_when_its_databases_are_prepared(name):
    (waiting,) = PODS[name]["initContainers"]
    expected = ["pgque_status"] if name == "ticker" else ["migrate", "--check"]

    assert waiting["command"] == ["python", "manage.py", *expected]
    assert waiting["env"] == main_container(name)["env"]


@pytest.mark.parametrize("name", [name for name in DEPLOYMENTS if name not in ("web", "console")])
def test_the_health_of_a_worker_is_what_its_own_command_says(name):
    container = main_container(name)

    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["exec"]["command"] == [*container["command"], "--check"]
        assert container[probe]["timeoutSeconds"] >= 10


@pytest.mark.parametrize("name", ["web", "console"])
def test_the_web_lives_while_it_answers_and_is_ready_while_it_can_serve_pages(name):
    container = main_container(name)

    paths = {probe: container[probe]["httpGet"]["path"] for probe in container if probe.endswith("Probe")}

    assert paths == {"startupProbe": "/livez", "readinessProbe": "/readyz/web", "livenessProbe": "/livez"}


@pytest.mark.parametrize(("pod", "container"), CONTAINERS)
def test_no_container_is_privileged_or_unlimited(pod, container):
    user = re.search(r"^USER (\d+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)[1]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert str(pod["securityContext"]["runAsUser"]) == user
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["image"] == "stega"
    for bound in ("requests", "limits"):
        assert set(container["resources"][bound]) == {"cpu", "memory"}


@pytest.mark.parametrize(("pod", "container"), CONTAINERS)
def test_only_emptied_folders_can_be_written_to(pod, container):
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounted = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}

    assert set(mounted) == {"/app/.stega", "/tmp"}
    assert all("emptyDir" in volume for volume in mounted.values())


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_an_update_or_a_drained_node_takes_no_process_away_before_another_works(name):
    spec = DEPLOYMENTS[name]["spec"]
    budget = of_kind("PodDisruptionBudget")[name]["spec"]

    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert budget == {"maxUnavailable": 1, "selector": spec["selector"]}
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] > 8


def test_each_process_has_the_replicas_that_its_kind_allows():
    replicas = {name: deployment["spec"].get("replicas") for name, deployment in DEPLOYMENTS.items()}
    scaler = of_kind("HorizontalPodAutoscaler")["web"]["spec"]

    assert replicas == {
        **{"web": None, "console": 1, "task-worker": 2},
        **{"ticker": 2, "notification-worker": 2, "sla-breach-worker": 3},
    }
    assert scaler["scaleTargetRef"]["name"] == "web"
    assert 2 <= scaler["minReplicas"] < scaler["maxReplicas"]


@pytest.mark.parametrize(("pod", "container"), CONTAINERS)
def test_secrets_are_written_nowhere(pod, container):
    for variable in container["env"]:
        if "value" in variable:
            assert re.fullmatch(
                r"postgresql://stega_\w+:\$\(DATABASE_PASSWORD\)@[\w.-]+:5432/\w+\?sslmode=require", variable["value"]
            )
        else:
            assert set(variable["valueFrom"]) == {"secretKeyRef"}


def test_there_is_no_secret_among_the_manifests():
    assert of_kind("Secret") == {}
    assert not [key for key in of_kind("ConfigMap")["stega"]["data"] if re.search("KEY|PASSWORD|DATABASE_URL", key)]


def test_every_setting_is_one_that_the_readme_describes():
    described = set(re.findall(r"`([A-Z][A-Z_]+)`", (ROOT / "README.md").read_text()))
    given = set(of_kind("ConfigMap")["stega"]["data"])
    for pod in PODS.values():
        given |= {variable["name"] for variable in pod["containers"][0]["env"]} - {"DATABASE_PASSWORD"}

    assert given <= described


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, (_, kind) in PROCESSES.items()])
def test_each_process_connects_in_the_role_of_its_kind(name, kind):
    environment = {variable["name"]: variable for variable in main_container(name)["env"]}

    assert environment["DATABASE_PASSWORD"]["valueFrom"]["secretKeyRef"] == {"name": f"stega-{kind}", "key": "password"}
    for variable in ("DATABASE_URL", "JOBS_DATABASE_URL", "EVENTS_DATABASE_URL"):
        assert f"//stega_{kind}:" in environment[variable]["value"]


def test_one_process_alone_tells_the_numbers_of_all_to_who_has_the_token():
    having = [name for name in DEPLOYMENTS if "STEGA_METRICS_TOKEN" in str(main_container(name)["env"])]
    policy = of_kind("NetworkPolicy")["metrics"]["spec"]

    assert having == ["console"]
    assert policy["podSelector"]["matchLabels"] == {"app.kubernetes.io/component": "console"}


def test_the_job_connects_as_the_owner_of_each_database():
    references = {
        variable["name"]: variable["valueFrom"]["secretKeyRef"]
        for variable in main_container("bootstrap")["env"]
        if "DATABASE" in variable["name"]
    }

    assert references == {
        "DATABASE_URL": {"name": "db-app-app", "key": "uri"},
        "JOBS_DATABASE_URL": {"name": "db-jobs-app", "key": "uri"},
        "EVENTS_DATABASE_URL": {"name": "db-events-app", "key": "uri"},
    }


@pytest.mark.parametrize(("cluster", "alias"), CLUSTERS.items())
def test_a_cluster_has_the_roles_that_connect_to_it(cluster, alias):
    spec = of_kind("Cluster")[cluster]["spec"]
    roles = {role["name"]: role for role in spec["managed"]["roles"]}
    connecting = {f"stega_{kind}" for kind in KINDS if alias in KINDS[kind]}

    assert {name for name, role in roles.items() if role.get("login")} == connecting
    for name in connecting:
        assert roles[name]["passwordSecret"] == {"name": name.replace("_", "-")}
    assert set(roles) - connecting == ({"pgque_reader", "pgque_writer", "pgque_admin"} if alias == "events" else set())


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_cluster_looks_for_hosts_that_vanished_as_their_processes_do(cluster):
    parameters = of_kind("Cluster")[cluster]["spec"]["postgresql"]["parameters"]

    assert parameters.items() >= vanishing.of_server(vanishing.OF_CLIENT).items()


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_cluster_survives_the_loss_of_an_instance_and_is_backed_up(cluster):
    spec = of_kind("Cluster")[cluster]["spec"]
    backup = of_kind("ScheduledBackup")[cluster]["spec"]

    assert spec["instances"] == 3
    assert spec["postgresql"]["synchronous"] == {"method": "any", "number": 1}
    assert spec["plugins"][0]["parameters"]["barmanObjectName"] in of_kind("ObjectStore")
    assert (backup["cluster"]["name"], backup["method"]) == (cluster, "plugin")


@pytest.mark.parametrize(("cluster", "alias"), CLUSTERS.items())
def test_only_who_uses_a_database_can_reach_it(cluster, alias):
    policies = of_kind("NetworkPolicy")
    users = {name for name, (_, kind) in PROCESSES.items() if alias in KINDS[kind]} | {"bootstrap"}

    leaving = policies[f"to-{cluster}"]["spec"]
    entering = policies[f"from-processes-to-{cluster}"]["spec"]

    assert set(leaving["podSelector"]["matchExpressions"][0]["values"]) == users
    assert set(entering["ingress"][0]["from"][0]["podSelector"]["matchExpressions"][0]["values"]) == users
    assert leaving["egress"][0]["to"][0]["podSelector"] == entering["podSelector"]


def test_what_no_policy_allows_is_denied():
    spec = of_kind("NetworkPolicy")["default-deny"]["spec"]

    assert spec == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
