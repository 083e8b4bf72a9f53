// Command gateway is the server that operators run in front of their databases, and the
// client that they run it with.
package main

import (
	"os"

	"github.com/loomgate/loomgate/cmd/gateway/internal/commands"
)

func main() { os.Exit(commands.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
