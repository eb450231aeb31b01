// Package sub contains the subcommands of ductor that set up and maintain it. They parse flags and print results.
// Other packages do the work.
package sub

import (
	"github.com/spf13/cobra"

	"ductor/internal/config"
)

// Source adds the flag --config to cmd, and returns a function that loads the configuration. The parts are the tables
// and keys that the command needs. The function load prints and ignores mistakes in all other parts. If no parts are
// given, the command needs the whole configuration.
type Source func(cmd *cobra.Command) (load func(parts ...string) (config.Config, error))

// forParts returns a Source whose function load always loads the given parts.
func (s Source) forParts(parts ...string) Source {
	return func(cmd *cobra.Command) func(...string) (config.Config, error) {
		load := s(cmd)
		return func(...string) (config.Config, error) { return load(parts...) }
	}
}
