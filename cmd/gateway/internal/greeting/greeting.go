// Package greeting is what a gateway prints for whoever tries it.
package greeting

import (
	"fmt"
	"io"

	"github.com/loomgate/loomgate/spi"
)

// Print writes lines that work, for the gateway that serves HTTP at the address. The
// event has an id of its own: run again, the first line finds out that it has happened
// already.
func Print(w io.Writer, http, keyFile string, tenant spi.TenantName) {
	fmt.Fprintf(w, `
Try it in another terminal:

  curl http://%[1]s/loomgate.v1.EventService/Append \
    -H "Authorization: Bearer $(cat %[2]s)" -H "Loomgate-Tenant: %[3]s" -H "Content-Type: application/json" \
    -d '{"execution": "order-1", "events": [{"id": "%[4]s", "kind": "Ordered", "json": "{\"total\": 12.30}"}]}'

  gateway executions show order-1 --tenant %[3]s --key-file %[2]s

`, http, keyFile, tenant, spi.NewEventID())
}
