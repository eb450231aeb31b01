package cron

import (
	"cmp"
	"strings"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// RightsLine says what a job may do without an approval.
func RightsLine(p lang.Printer, r orchestrator.Rights) string {
	parts := []string{p.Text("cron.rights", rightsMode(p, r))}
	if len(r.Rules) > 0 {
		parts = append(parts, p.Text("cron.rights-rules", render.Cut(p.List(r.Rules...), rightsShown)))
	}
	if only := r.Tools.Only; len(only) > 0 {
		parts = append(parts, p.Text("cron.rights-tools", render.Cut(p.List(only...), rightsShown)))
	}
	if denied := r.Tools.Denied; len(denied) > 0 {
		parts = append(parts, p.Text("cron.rights-denied-tools", render.Cut(p.List(denied...), rightsShown)))
	}
	return strings.Join(parts, "; ")
}

const rightsShown = 300

func rightsMode(p lang.Printer, r orchestrator.Rights) string {
	if r.Mode == "" {
		return p.Text("cron.rights-at-most-ask")
	}
	return string(r.Mode)
}

// rightsFields are the rights of a job that a user can change. Only the configuration grants bypass without end.
func rightsFields(p lang.Printer) []field {
	mode := field{code: "p", label: p.Text("cron.permission"), value: func(j orchestrator.Job) string { return rightsMode(p, j.Rights) }}
	for _, m := range []cli.PermissionMode{"", cli.Plan, cli.Ask, cli.AcceptEdits, cli.Auto} {
		mode.choices = append(mode.choices, one(rightsMode(p, orchestrator.Rights{Mode: m}), func(j *orchestrator.Job) *cli.PermissionMode { return &j.Rights.Mode }, m))
	}
	return []field{mode,
		rightsList(p, "u", p.Text("cron.rules"), p.Text("cron.ask-rules"), p.Text("cron.rules-none"), p.Text("cron.rules-none-button"),
			func(r *orchestrator.Rights) *[]string { return &r.Rules }),
		rightsList(p, "w", p.Text("cron.tools"), p.Text("cron.ask-tools"), p.Text("cron.tools-all"), p.Text("cron.tools-all-button"),
			func(r *orchestrator.Rights) *[]string { return &r.Tools.Only }),
	}
}

// rightsList is a field that is a list of lines; empty is the word for none, and emptyButton the button for it.
func rightsList(p lang.Printer, code, label, ask, empty, emptyButton string, at func(*orchestrator.Rights) *[]string) field {
	return field{
		code: code, label: label, ask: ask,
		value: func(j orchestrator.Job) string {
			return cmp.Or(render.Cut(p.List(*at(&j.Rights)...), rightsShown), empty)
		},
		read: func(_ orchestrator.Jobs, j *orchestrator.Job, text string) error {
			var list []string
			for line := range strings.Lines(text) {
				if line = strings.TrimSpace(line); line != "" {
					list = append(list, line)
				}
			}
			*at(&j.Rights) = list
			return nil // the store checks it
		},
		choices: []choice{{
			label: emptyButton, set: func(j *orchestrator.Job) { *at(&j.Rights) = nil },
			is: func(j orchestrator.Job) bool { return len(*at(&j.Rights)) == 0 },
		}},
	}
}
