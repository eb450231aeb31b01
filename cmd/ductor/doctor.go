package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ductor/internal/app"
	"ductor/internal/config"
	"ductor/internal/doctor"
)

func doctorCommand(env config.Environment) *cobra.Command {
	var from *source
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation and print a fix for each problem",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			write := doctor.Findings.WriteText
			if asJSON {
				write = doctor.Findings.WriteJSON
			}
			return examine(cmd.Context(), from, cmd.OutOrStdout(), write)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false,
		"print a JSON array of objects with name, state, text and fix")
	from = sourceOf(cmd, env)
	return cmd
}

// examine checks the set-up and writes the findings. It returns an error if a check failed.
func examine(ctx context.Context, from *source, out io.Writer, write func(doctor.Findings, io.Writer) error) error {
	cfg, err := from.load()
	if err != nil {
		return errors.Join(app.WithKind(app.ErrConfig, errors.New("the configuration cannot be used")),
			write(doctor.Unreadable(from.path, err), out))
	}
	found := doctor.Examine(ctx, cfg)
	var verdict error
	if n := found.Failed(); n == 1 {
		verdict = errors.New("one check failed")
	} else if n > 1 {
		verdict = fmt.Errorf("%d checks failed", n)
	}
	return errors.Join(verdict, write(found, out))
}
