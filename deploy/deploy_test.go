// Package deploy_test checks what can be checked of deployments without deploying: that
// manifests decode strictly, fit one another, and hold configurations that are valid.
package deploy_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/coreos/go-systemd/v22/unit"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// manifests decodes everything under kubernetes/, strictly.
func manifests(t *testing.T) (all []runtime.Object) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme, networkingv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Strict: true})
	paths, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(raw)))
		for buf := make([]byte, len(raw)+1); ; {
			n, err := documents.Read(buf)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			text, err := yaml.YAMLToJSONStrict(buf[:n])
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			object, _, err := strict.Decode(text, nil, nil)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			all = append(all, object)
		}
	}
	return all
}

func TestTheManifestsDecodeAndFitOneAnother(t *testing.T) {
	var gateway *appsv1.Deployment
	configs, secrets := map[string]bool{}, map[string]bool{"loomgate-tls": true} // which an operator brings
	objects := manifests(t)
	for _, object := range objects {
		switch o := object.(type) {
		case *appsv1.Deployment:
			gateway = o
		case *corev1.ConfigMap:
			configs[o.Name] = true
		case *corev1.Secret:
			secrets[o.Name] = true
		}
	}
	if gateway == nil {
		t.Fatal("there is no Deployment")
	}
	pod := labels.Set(gateway.Spec.Template.Labels)
	ports := map[string]bool{}
	for _, p := range gateway.Spec.Template.Spec.Containers[0].Ports {
		ports[p.Name] = true
	}
	selects := func(what string, selector *metav1.LabelSelector) {
		t.Helper()
		s, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil || s.Empty() || !s.Matches(pod) {
			t.Errorf("%s does not select the gateways: %v (%v)", what, s, err)
		}
	}
	selects("the Deployment", gateway.Spec.Selector)
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.Service:
			selects("the Service", &metav1.LabelSelector{MatchLabels: o.Spec.Selector})
			for _, p := range o.Spec.Ports {
				if !ports[p.TargetPort.StrVal] {
					t.Errorf("the Service leads to port %q, which no container has", p.TargetPort.StrVal)
				}
			}
		case *policyv1.PodDisruptionBudget:
			selects("the budget", o.Spec.Selector)
			if o.Spec.MinAvailable.IntValue() >= int(*gateway.Spec.Replicas) {
				t.Error("the budget lets no gateway be moved")
			}
		case *networkingv1.NetworkPolicy:
			selects("the policy", &o.Spec.PodSelector)
		case *batchv1.Job:
			checkPod(t, "the Job", o.Spec.Template.Spec, configs, secrets)
			if s, err := metav1.LabelSelectorAsSelector(gateway.Spec.Selector); err != nil || s.Matches(labels.Set(o.Spec.Template.Labels)) {
				t.Error("the Job's pods would be taken for gateways")
			}
		}
	}
	checkPod(t, "the Deployment", gateway.Spec.Template.Spec, configs, secrets)
	c := gateway.Spec.Template.Spec.Containers[0]
	for name, probe := range map[string]*corev1.Probe{"liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		if probe == nil || !ports[probe.HTTPGet.Port.StrVal] {
			t.Errorf("the %s probe asks no port of the container", name)
		}
	}
	const drain = 20 // deadlines.drain of the ConfigMap
	if *gateway.Spec.Template.Spec.TerminationGracePeriodSeconds < c.Lifecycle.PreStop.Sleep.Seconds+drain {
		t.Error("the grace period is shorter than preStop and deadlines.drain")
	}
}

// checkPod checks that a pod mounts what there is and gives up every privilege.
func checkPod(t *testing.T, what string, pod corev1.PodSpec, configs, secrets map[string]bool) {
	t.Helper()
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
		if v.ConfigMap != nil && !configs[v.ConfigMap.Name] || v.Secret != nil && !secrets[v.Secret.SecretName] {
			t.Errorf("%s mounts volume %q of something that there is not", what, v.Name)
		}
	}
	if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot {
		t.Errorf("%s may run as root", what)
	}
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		var config string // the folder that the ConfigMap is in
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("%s, container %s mounts %q, which is no volume", what, c.Name, m.Name)
			}
			if m.SubPath != "" {
				t.Errorf("%s, container %s mounts a file of %q, which Kubernetes does not update", what, c.Name, m.Name)
			}
			for _, other := range c.VolumeMounts {
				if strings.HasPrefix(m.MountPath, other.MountPath+"/") {
					t.Errorf("%s, container %s mounts %q within %q, which cannot be written to", what, c.Name, m.Name, other.Name)
				}
			}
			if m.Name == "config" {
				config = m.MountPath
			}
		}
		if i := slices.Index(c.Args, "-c"); i < 0 || c.Args[i+1] != config+"/gateway.yaml" {
			t.Errorf("%s, container %s is told %q and has its configuration in %s", what, c.Name, c.Args, config)
		}
		s := c.SecurityContext
		if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || len(s.Capabilities.Drop) == 0 {
			t.Errorf("%s, container %s keeps privileges", what, c.Name)
		}
	}
}

// place is a folder that stands for those that deployments have.
func place(t *testing.T) (dir string, here func(config string) string) {
	t.Helper()
	dir = t.TempDir()
	write := func(name string, text []byte) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for i, shard := range []string{"shard-a", "shard-b", "shard-c"} {
		dsn := []byte("postgres://loomgate:secret@db-" + string(rune('a'+i)) + ":5432/loomgate?sslmode=verify-full")
		for _, name := range []string{"dsn/" + shard, shard + ".dsn"} {
			write(name, dsn)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write("tls/tls.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
	write("tls/tls.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	folders := strings.NewReplacer("/etc/loomgate", dir, "/run/secrets", dir, "/run/credentials/loomgate.service", dir)
	return dir, folders.Replace
}

func TestEveryConfigurationIsValid(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "gateway")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "..", "-o", binary, "./cmd/gateway").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	configs := map[string]string{}
	for _, path := range []string{"compose/gateway.yaml", "systemd/gateway.yaml"} {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		configs[path] = string(raw)
	}
	for _, object := range manifests(t) {
		if c, ok := object.(*corev1.ConfigMap); ok {
			configs["the ConfigMap"] = c.Data["gateway.yaml"]
		}
	}
	if len(configs) != 3 {
		t.Fatal("a configuration is missing")
	}
	for name, text := range configs {
		dir, here := place(t)
		file := filepath.Join(dir, "gateway.yaml")
		if err := os.WriteFile(file, []byte(here(text)), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), binary, "config", "check", "-c", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestTheComposeFileLoadsAndItsServicesDependOnWhatThereIs(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{"compose/compose.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"shard-a", "shard-b", "shard-c", "migrate", "init", "gateway-1", "gateway-2"} {
		if _, err := project.GetService(want); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"gateway-1", "gateway-2"} {
		s, err := project.GetService(name)
		if err != nil {
			t.Fatal(err)
		}
		at := s.Environment["LOOMGATE_CONFIG"]
		mounted := func(v types.ServiceVolumeConfig) bool { return at != nil && v.Target == *at }
		if s.HealthCheck == nil || !slices.Equal(s.HealthCheck.Test, []string{"CMD", "/gateway", "health"}) || !slices.ContainsFunc(s.Volumes, mounted) {
			t.Errorf("%s is not asked whether it serves, or with another configuration", name)
		}
	}
}

func TestTheUnitGivesUpWhatItDoesNotNeed(t *testing.T) {
	f, err := os.Open("systemd/loomgate.service")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	options, err := unit.DeserializeOptions(f)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, o := range options {
		said[o.Name] = o.Value
	}
	for name, want := range map[string]string{
		"ExecStart":    "/usr/local/bin/gateway serve -c /etc/loomgate/gateway.yaml",
		"ExecStartPre": "/usr/local/bin/gateway config check -c /etc/loomgate/gateway.yaml",
		"DynamicUser":  "yes", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "ProtectHome": "yes", "PrivateDevices": "yes",
		"CapabilityBoundingSet": "", "WantedBy": "multi-user.target",
	} {
		if got, there := said[name]; !there || got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
}

func TestTheImageHoldsTheBinaryAloneAndDoesNotRunAsRoot(t *testing.T) {
	raw, err := os.ReadFile("docker/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, ok := strings.Cut(string(raw), "\nFROM scratch\n")
	if !ok || strings.Contains(last, "FROM ") {
		t.Error("the last stage is not from scratch")
	}
	for _, want := range []string{"USER 65532:65532\n", `ENTRYPOINT ["/gateway"]`, "ca-certificates.crt", `CMD ["/gateway", "health"]`} {
		if !strings.Contains(last, want) {
			t.Errorf("the last stage has no %q", want)
		}
	}
}
