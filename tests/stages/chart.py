"""What the rendered chart must be. Run by tests/stages/chart.sh."""

import pathlib
import subprocess
import tempfile
import unittest

import kubernetes_validate
import yaml

CHART = "charts/redrive"
HELM = "target/tools/helm"
REDRIVE = pathlib.Path("target/release/redrive")
KUBERNETES = ["1.29", "1.33", "1.37"]
VALUES = [
    *sorted(pathlib.Path(CHART, "ci").glob("*-values.yaml")),
    *sorted(pathlib.Path("examples").glob("*.values.yaml")),
]
MOUNTED_SECRETS = "/etc/redrive/secrets"
# What the values files refer to. The certificate is read, and trusted by nobody.
SECRETS = {
    "openai": "a key that opens nothing",
    "redis-password": "a password of nobody",
    "redis-ca.crt": "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n",
}


def helm(*arguments: str) -> subprocess.CompletedProcess:
    command = [HELM, "template", "demo", CHART, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def render(*arguments: str) -> dict:
    """The rendered objects by kind."""
    result = helm(*arguments)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return {each["kind"]: each for each in yaml.safe_load_all(result.stdout) if each}


def pod(objects: dict) -> dict:
    return objects["Deployment"]["spec"]["template"]["spec"]


def sidecar(objects: dict) -> dict:
    (container,) = pod(objects)["initContainers"]
    return container


class Chart(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.default = render()
        cls.full = render("--values", f"{CHART}/ci/full-values.yaml")

    def refused(self, *arguments: str) -> str:
        result = helm(*arguments)
        self.assertNotEqual(result.returncode, 0, "the chart rendered")
        return result.stderr

    def test_every_object_is_valid_for_old_and_new_kubernetes(self):
        self.assertGreaterEqual(len(VALUES), 3)
        for values in VALUES:
            for version in KUBERNETES:
                for kind, each in render("--values", str(values)).items():
                    with self.subTest(values=values.name, version=version, kind=kind):
                        kubernetes_validate.validate(each, version, strict=True)

    def test_the_schemas_would_notice_a_misspelt_field(self):
        broken = render()["Deployment"]
        container = broken["spec"]["template"]["spec"]["initContainers"][0]
        container["restartpolicy"] = container.pop("restartPolicy")
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(broken, KUBERNETES[0], strict=True)

    def test_the_sidecar_is_native(self):
        self.assertEqual(sidecar(self.default)["restartPolicy"], "Always")
        self.assertEqual([each["name"] for each in pod(self.default)["containers"]], ["app"])

    def test_the_probes_ask_the_public_listener(self):
        container = sidecar(self.default)
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        probes = {}
        for kind in ["startupProbe", "readinessProbe", "livenessProbe"]:
            get = container[kind]["httpGet"]
            probes[kind] = (get["path"], ports[get["port"]])
        self.assertEqual(
            probes,
            {
                "startupProbe": ("/readyz", 15090),
                "readinessProbe": ("/readyz", 15090),
                "livenessProbe": ("/healthz", 15090),
            },
        )

    def test_the_application_is_served_to_its_end_unless_the_drain_is_asked_for(self):
        self.assertNotIn("lifecycle", sidecar(self.default))
        hook = sidecar(self.full)["lifecycle"]["preStop"]["exec"]["command"]
        self.assertEqual(hook, ["/usr/local/bin/redrive", "drain"])

    def test_the_pod_is_restricted(self):
        for objects in [self.default, self.full]:
            spec = pod(objects)
            self.assertIs(spec["automountServiceAccountToken"], False)
            self.assertIs(spec["securityContext"]["runAsNonRoot"], True)
            self.assertEqual(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            for container in spec["initContainers"] + spec["containers"]:
                context = container["securityContext"]
                self.assertIs(context["allowPrivilegeEscalation"], False)
                self.assertIs(context["readOnlyRootFilesystem"], True)
                self.assertIs(context["runAsNonRoot"], True)
                self.assertNotEqual(context["runAsUser"], 0)
                self.assertEqual(context["capabilities"], {"drop": ["ALL"]})

    def test_the_configuration_comes_from_the_config_map(self):
        container, volumes = sidecar(self.default), pod(self.default)["volumes"]
        self.assertEqual(container["args"], ["serve", "--config", "/etc/redrive/config/redrive.yaml"])
        mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
        (volume,) = [each for each in volumes if each["name"] == mounts["/etc/redrive/config"]]
        config_map = self.default["ConfigMap"]
        self.assertEqual(volume["configMap"]["name"], config_map["metadata"]["name"])
        self.assertEqual(list(config_map["data"]), ["redrive.yaml"])

    def test_secrets_are_files_and_never_in_the_environment(self):
        container, volumes = sidecar(self.default), pod(self.default)["volumes"]
        (mount,) = [each for each in container["volumeMounts"] if each["name"] == "redrive-secrets"]
        self.assertEqual(mount["mountPath"], MOUNTED_SECRETS)
        self.assertIs(mount["readOnly"], True)
        (volume,) = [each for each in volumes if each["name"] == "redrive-secrets"]
        self.assertEqual(volume["secret"], {"secretName": "redrive-providers", "defaultMode": 0o440})
        self.assertNotIn("env", container)

    def test_without_a_secret_none_is_mounted(self):
        names = [each["name"] for each in pod(self.full)["volumes"]]
        self.assertEqual(names, ["redrive-config"])

    def test_the_configuration_is_given_on_unchanged_with_the_grace_at_its_end(self):
        values = yaml.safe_load(pathlib.Path(CHART, "ci/full-values.yaml").read_text())
        text = self.full["ConfigMap"]["data"]["redrive.yaml"]
        self.assertEqual(text.strip(), values["redrive"]["config"] + "drain: {grace: 300s}")

    def test_a_changed_configuration_replaces_the_pods(self):
        def checksum(objects):
            metadata = objects["Deployment"]["spec"]["template"]["metadata"]
            return metadata["annotations"]["checksum/redrive-config"]

        self.assertNotEqual(checksum(self.default), checksum(self.full))

    def test_the_application_is_told_where_the_sidecar_is(self):
        def address(objects):
            (container,) = pod(objects)["containers"]
            return {each["name"]: each["value"] for each in container["env"]}["REDRIVE_ADDRESS"]

        self.assertEqual(address(self.default), "127.0.0.1:50051")
        self.assertEqual(address(self.full), "127.0.0.1:50052")

    def test_a_digest_pins_the_image(self):
        self.assertEqual(sidecar(self.default)["image"], "redrive:0.1.0")
        self.assertRegex(sidecar(self.full)["image"], "^example/redrive@sha256:[0-9a-f]{64}$")
        self.assertIn("digest", self.refused("--set", "redrive.image.digest=latest"))

    def test_the_pod_is_not_ended_before_the_drain(self):
        self.assertEqual(pod(self.default)["terminationGracePeriodSeconds"], 135)
        render("--set", "terminationGracePeriodSeconds=125")
        refusal = self.refused("--set", "terminationGracePeriodSeconds=124")
        self.assertIn("terminationGracePeriodSeconds (124) must be at least", refusal)

    def test_keys_that_belong_to_the_chart_are_refused_in_the_configuration(self):
        for text, why in [
            ("drain: {grace: 1s}", "may not have drain"),
            ("listen: {admin: '127.0.0.1:1'}", "listen.admin must stay"),
            ("listen: {public: '127.0.0.1:15090'}", "listen.public must stay"),
            ("- a list", "not a YAML block mapping"),
        ]:
            with self.subTest(text=text):
                self.assertIn(why, self.refused("--set-literal", f"redrive.config={text}"))

    def test_no_more_pods_send_their_shares_than_there_are_shares(self):
        shared = "examples/shared-budgets.values.yaml"
        render("--values", shared, "--set", "replicas=3")
        refusal = self.refused("--values", shared, "--set", "replicas=4")
        self.assertIn("max_pods (6) must be at least twice replicas (8)", refusal)
        for engine, refused in [
            ("redis: {on_loss: local_share}", True),
            ("redis: {on_loss: closed, local_share: {max_pods: 1}}", False),
            ("redis: ", False),
        ]:
            with self.subTest(engine=engine):
                text = ["--set-literal", f"redrive.config=engines: {{{engine}}}"]
                result = helm(*text, "--set", "replicas=6")
                self.assertEqual(result.returncode != 0, refused, result.stderr)

    def test_an_unknown_value_is_refused(self):
        self.assertIn("drainGrace", self.refused("--set", "redrive.drainGrace=5"))

    @unittest.skipUnless(REDRIVE.exists(), "needs the release build")
    def test_the_rendered_configuration_passes_the_check(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, secret in SECRETS.items():
                pathlib.Path(folder, name).write_text(secret)
            for values in VALUES:
                objects = render("--values", str(values))
                text = objects["ConfigMap"]["data"]["redrive.yaml"]
                config = pathlib.Path(folder, "redrive.yaml")
                config.write_text(text.replace(MOUNTED_SECRETS, folder))
                check = subprocess.run([REDRIVE, "check", config], capture_output=True, text=True)
                self.assertEqual(check.returncode, 0, check.stdout + check.stderr)


if __name__ == "__main__":
    unittest.main()
