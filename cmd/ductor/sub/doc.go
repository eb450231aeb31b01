// Package sub contains the subcommands of ductor that set up and maintain it. They parse flags and print results.
// Other packages do the work.
package sub

import (
	"github.com/spf13/cobra"

	"ductor/internal/config"
)

// Source adds the flag --config to cmd. It returns the function that loads the configuration. If parts names the tables
// and keys that the command needs, that function prints mistakes elsewhere and ignores them.
type Source func(cmd *cobra.Command) (load func(parts ...string) (config.Config, error))

// only returns a Source for commands that need only some parts of the configuration.
func (s Source) only(parts ...string) Source {
	return func(cmd *cobra.Command) func(...string) (config.Config, error) {
		load := s(cmd)
		return func(...string) (config.Config, error) { return load(parts...) }
	}
}
