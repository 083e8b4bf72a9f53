package config

import "testing"

func TestWhatIsSeenFromOutsideIsRefusedUnlessItIsAllowed(t *testing.T) {
	_, err := read(`http:
  cors_origins: [https://a.example, "*", https://*.example, https://a.example/, null-origin]
admin:
  listen: 0.0.0.0:7072
telemetry:
  traces:
    endpoint: collector:4317
    sample_ratio: 1.5
  tenants: acme
log:
  slow_call: -1s
`)
	wantProblems(t, err,
		"gateway.yaml:2:17: http.cors_origins has what is no origin, such as https://console.example.com; there is no wildcard",
		"gateway.yaml:4:11: admin.listen is not on loopback, and asks for no key: allow it by admin.insecure_bind",
		"gateway.yaml:7:15: telemetry.traces.endpoint is no endpoint, such as http://127.0.0.1:4317",
		"gateway.yaml:8:19: telemetry.traces.sample_ratio is not in 0 to 1",
		"gateway.yaml:9:12: telemetry.tenants is text, not a list",
		"gateway.yaml:11:14: log.slow_call is not in 0s to 1h",
	)
	mustRead(t, "admin: {listen: '0.0.0.0:7072', insecure_bind: true}\n")
}

func TestAListHoldsTexts(t *testing.T) {
	_, err := read("telemetry:\n  tenants: [a, 7]\nhttp:\n  cors_origins: ['https://a.example,https://b.example']\n")
	wantProblems(t, err,
		"gateway.yaml:2:16: telemetry.tenants has a number in it, not text: write it in quotes",
		"gateway.yaml:4:18: http.cors_origins has a text in it that is empty or has a comma",
	)
	_, err = read("", "LOOMGATE_TELEMETRY_TENANTS=a,,b")
	wantProblems(t, err, "LOOMGATE_TELEMETRY_TENANTS: telemetry.tenants has a text in it that is empty")
}
