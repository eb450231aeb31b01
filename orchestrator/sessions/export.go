package sessions

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// Limits of an export.
const (
	exportedTurns = 10_000   // number of entries, from the newest
	exportedTools = 16 << 20 // if the export is longer than this number of bytes, it contains no further tools
	exportedInput = 8 << 10  // bytes of the arguments of a tool
)

func (b *Book) exportMarkdown(ctx context.Context, s orchestrator.Session, turns []orchestrator.Turn) (string, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "# %s\n\n%s, %s\n", cmp.Or(s.Title, "Session"), s.Dir, s.Created.UTC().Format(time.RFC3339))
	for _, t := range turns {
		model := strings.TrimSpace(string(t.Agent) + " " + string(cmp.Or(t.Outcome.Model, t.Model)))
		fmt.Fprintf(&text, "\n## %s%s\n\n%s\n", t.Queued.UTC().Format(time.RFC3339), exportedKind(t, model),
			t.Prompt.Text)
		for _, a := range t.Prompt.Attachments {
			fmt.Fprintf(&text, "\n- %s (%s)\n", a.Name, a.MIME)
		}
		steps, err := b.opts.Store.StepsOf(ctx, t.ID)
		if err != nil {
			return "", err
		}
		if text.Len() > exportedTools && len(steps) > 0 {
			fmt.Fprintf(&text, "\n- %d tools and changes have no room here\n", len(steps))
			steps = nil
		}
		for _, step := range steps {
			text.WriteString("\n- " + exportedStep(step) + "\n")
		}
		if t.Outcome.Text != "" {
			fmt.Fprintf(&text, "\n### %s\n\n%s\n", model, t.Outcome.Text)
		}
	}
	return text.String(), nil
}

// exportedKind describes an entry that is not a normal turn.
func exportedKind(t orchestrator.Turn, model string) (kind string) {
	switch t.Entry.Kind {
	case orchestrator.ConsultationEntry:
		kind = ": " + model + " was asked"
	case orchestrator.WorkEntry:
		kind = ": " + model + " worked"
	default:
		return ""
	}
	if t.Entry.Role != "" {
		kind += " as " + t.Entry.Role
	}
	return kind
}

// exportedStep formats a step: a changed file, or a tool with its arguments as an indented block.
func exportedStep(s orchestrator.Step) string {
	if s.Tool == "" {
		return string(s.Change) + " " + s.Title
	}
	name := s.Tool
	if s.Err != "" {
		name += ": " + s.Err
	}
	input := cli.ShortenCounted(cmp.Or(s.Input, s.Title), exportedInput)
	return name + "\n\n      " + strings.ReplaceAll(input, "\n", "\n      ")
}
