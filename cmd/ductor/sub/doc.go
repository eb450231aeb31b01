// Package sub holds subcommands of ductor that set it up and keep it. They take flags and print; what they do is in
// packages of its own.
package sub

import (
	"github.com/spf13/cobra"

	"ductor/internal/config"
)

// Source gives cmd the flag that names the configuration, and returns what loads it.
type Source func(cmd *cobra.Command) (load func() (config.Config, error))
