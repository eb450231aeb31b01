package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ductor/internal/config"
	"ductor/internal/store"
)

func auditCommand(env config.Environment) *cobra.Command {
	var from *source
	var since time.Duration
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List what agents asked for and did, who decided, and what users changed",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			cfg, err := from.load()
			if err != nil {
				return err
			}
			path := filepath.Join(cfg.Storage.Dir, databaseFile)
			db, err := store.Look(cmd.Context(), path, store.Options{})
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("there is nothing to list yet: %w", err)
			}
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			entries, err := db.AuditSince(cmd.Context(), time.Now().Add(-since), limit)
			if err != nil {
				return err
			}
			if asJSON {
				return writeAuditJSON(cmd.OutOrStdout(), entries)
			}
			return writeAudit(cmd.OutOrStdout(), entries)
		},
	}
	cmd.Flags().DurationVar(&since, "since", 7*24*time.Hour, "how far back to look")
	cmd.Flags().IntVarP(&limit, "limit", "n", 200, "how many entries to list, the newest of them")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write an object a line, for programs")
	from = sourceOf(cmd, env)
	return cmd
}
