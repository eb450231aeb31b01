// Package sub contains the subcommands of ductor that set up and maintain it. They parse flags and print results.
// Other packages do the work.
package sub

import (
	"github.com/spf13/cobra"

	"ductor/internal/config"
)

// Source adds the flag --config to cmd. It returns the function that loads the configuration.
type Source func(cmd *cobra.Command) (load func() (config.Config, error))
