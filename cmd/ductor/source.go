package main

import (
	"github.com/spf13/cobra"

	"ductor/internal/config"
)

// source is where a command takes its configuration from.
type source struct {
	env  config.Environment
	path string // as the flag says; the default where it says nothing
	err  error  // why there is no default
}

// sourceOf is the source of cmd, with the flag that names a file.
func sourceOf(cmd *cobra.Command, env config.Environment) *source {
	s := &source{env: env}
	s.path, s.err = config.DefaultPath(env)
	cmd.Flags().StringVarP(&s.path, "config", "c", s.path, "the configuration file; $"+config.PathVariable+" names another default")
	return s
}

func (s *source) load() (config.Config, error) {
	if s.path == "" && s.err != nil {
		return config.Config{}, coded{s.err, errConfig}
	}
	cfg, err := config.LoadFrom(s.path, s.env)
	if err != nil {
		return cfg, coded{err, errConfig}
	}
	cfg.Warnings = append(cfg.Warnings, rootDoubts(cfg)...)
	return cfg, nil
}
