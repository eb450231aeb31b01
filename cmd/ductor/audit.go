package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf16"

	"github.com/spf13/cobra"

	"ductor/cmd/ductor/sub"
	"ductor/internal/app"
	"ductor/internal/config"
	"ductor/internal/store"
	"ductor/orchestrator"
)

func auditCommand(env config.Environment) *cobra.Command {
	var from *source
	var since time.Duration
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List approvals, who decided them, what ran without asking, and what users changed",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if since <= 0 || limit <= 0 {
				return errors.New("--since and --limit must be above zero")
			}
			cfg, err := from.loadPlaces(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			path := filepath.Join(cfg.Storage.Dir, app.DatabaseFile)
			db, err := store.OpenReadOnly(cmd.Context(), path, store.Options{})
			if errors.Is(err, fs.ErrNotExist) {
				return errors.New("there is nothing to list: ductor has not run with this configuration yet")
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
	cmd.Flags().DurationVar(&since, "since", 7*24*time.Hour, "list entries of this time until now")
	cmd.Flags().IntVarP(&limit, "limit", "n", 200, "list at most this many entries, the newest ones")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	from = sourceOf(cmd, env)
	return cmd
}

// writeAudit writes audit entries as a table, the oldest first.
func writeAudit(out io.Writer, entries []orchestrator.AuditEntry) error {
	if len(entries) == 0 {
		_, err := fmt.Fprintln(out, "nothing happened")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tCHAT\tAGENT\tWHAT\tBY\tOF\tRULE OR REASON")
	for _, e := range slices.Backward(entries) {
		of := strings.TrimSpace(e.Tool + " " + e.Title)
		if e.Same > 1 {
			of += fmt.Sprintf(" (%d times)", e.Same)
		}
		by := "-"
		if e.By != 0 {
			by = fmt.Sprint(e.By)
		}
		why := e.Rule
		if e.Reason != "" {
			why = e.Reason
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.At.Local().Format(time.DateTime), e.Conversation.Key(),
			e.Agent, e.What, by,
			sub.PlainLine(of), sub.PlainLine(why))
	}
	return w.Flush()
}

type auditRow struct {
	ID       int64     `json:"id"`
	At       time.Time `json:"at"`
	What     string    `json:"what"`
	Chat     int64     `json:"chat"`
	Topic    int       `json:"topic,omitempty"`
	By       int64     `json:"by,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	Tool     string    `json:"tool,omitempty"`
	Title    string    `json:"title,omitempty"`
	Choice   string    `json:"choice,omitempty"`
	Rule     string    `json:"rule,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Same     int       `json:"same,omitempty"`
	Turn     string    `json:"turn,omitempty"`
	Approval string    `json:"approval,omitempty"`
	Call     string    `json:"call,omitempty"`
}

// writeAuditJSON writes each audit entry as a line of JSON, the oldest first.
func writeAuditJSON(out io.Writer, entries []orchestrator.AuditEntry) error {
	for _, e := range slices.Backward(entries) {
		line, err := json.Marshal(auditRow{
			ID: e.ID, At: e.At, What: string(e.What), Chat: e.Conversation.Chat, Topic: e.Conversation.Topic,
			By:    int64(e.By),
			Agent: string(e.Agent), Tool: e.Tool, Title: e.Title, Choice: string(e.Choice), Rule: e.Rule,
			Reason: e.Reason,
			Same:   e.Same, Turn: string(e.Turn), Approval: string(e.Approval), Call: string(e.Call),
		})
		if err != nil {
			return fmt.Errorf("write the audit: %w", err)
		}
		if _, err := fmt.Fprintln(out, escapeUnseen(string(line))); err != nil {
			return err
		}
	}
	return nil
}

// escapeUnseen escapes invisible characters in JSON, because a terminal would interpret them.
func escapeUnseen(text string) string {
	var out strings.Builder
	for _, r := range text {
		if !sub.Unseen(r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, "\\u%04x", unit)
		}
	}
	return out.String()
}
