package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheSupervisorExampleRunsAgainstAGateway(t *testing.T) {
	example := filepath.Join(t.TempDir(), "supervisor")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", example, "../../examples/supervisor").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p := embedded(t)
	cmd := exec.CommandContext(t.Context(), example)
	cmd.Env = append(os.Environ(), "LOOMGATE_ADDR="+p.grpc, "LOOMGATE_KEY="+strings.TrimSpace(read(t, p.asTenant().keyFile)))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "crashes") || !strings.HasSuffix(string(out), "node B resumed the parent, which is done\n") {
		t.Errorf("%v: it says\n%s", err, out)
	}
}
