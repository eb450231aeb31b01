package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ductor/internal/config"
	"ductor/internal/store"
	"ductor/orchestrator"
)

func auditCommand(env config.Environment) *cobra.Command {
	var from *source
	var since time.Duration
	var limit int
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List what agents asked for, who decided and how",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			cfg, err := from.load()
			if err != nil {
				return err
			}
			path := filepath.Join(cfg.Storage.Dir, databaseFile)
			if _, err := os.Stat(path); err != nil {
				return fmt.Errorf("there is nothing to list yet: %w", err)
			}
			db, err := store.Open(cmd.Context(), path, store.Options{})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			entries, err := db.AuditSince(cmd.Context(), time.Now().Add(-since), limit)
			if err != nil {
				return err
			}
			return writeAudit(cmd.OutOrStdout(), entries)
		},
	}
	cmd.Flags().DurationVar(&since, "since", 7*24*time.Hour, "how far back to look")
	cmd.Flags().IntVarP(&limit, "limit", "n", 200, "how many decisions to list, the newest of them")
	from = sourceOf(cmd, env)
	return cmd
}

// writeAudit writes decisions, the oldest first.
func writeAudit(out io.Writer, entries []orchestrator.AuditEntry) error {
	if len(entries) == 0 {
		_, err := fmt.Fprintln(out, "nothing was asked")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tCHAT\tAGENT\tDECISION\tBY\tWHAT\tRULE OR REASON")
	for _, e := range slices.Backward(entries) {
		what := e.Title
		if e.Tool != "" {
			what = e.Tool + " " + e.Title
		}
		if e.Same > 1 {
			what += fmt.Sprintf(" (%d times)", e.Same)
		}
		by := "-"
		if e.By != 0 {
			by = fmt.Sprint(e.By)
		}
		why := e.Rule
		if e.Reason != "" {
			why = e.Reason
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.At.Local().Format(time.DateTime), e.Conversation.Key(), e.Agent, e.What, by,
			onOneLine(what), onOneLine(why))
	}
	return w.Flush()
}

// onOneLine keeps what an agent wrote from breaking the table, or the terminal.
func onOneLine(s string) string {
	out := []rune{}
	for _, r := range s {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			r = ' '
		}
		out = append(out, r)
	}
	return string(out)
}
