// Command ductor-supervisor is the supervisor of ductor alone, for places where ductor itself is not: it is
// copied into containers. Build it with CGO_ENABLED=0, so that it runs in any. It is NOT of use by hand.
package main

import (
	"fmt"
	"os"

	"ductor/internal/supervisor"
)

func main() {
	if len(os.Args) < 2 || os.Args[1] != "supervise" {
		fmt.Fprintln(os.Stderr, "usage: ductor-supervisor supervise ...; it is started by ductor")
		os.Exit(2)
	}
	os.Exit(supervisor.Main(os.Args[2:], os.Stderr))
}
