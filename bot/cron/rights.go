package cron

import (
	"cmp"
	"strings"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// OriginLines returns a line with the rights of a turn if a job or a group member started the turn, and nothing
// otherwise.
func OriginLines(p lang.Printer, r orchestrator.Rights) []string {
	switch r.Of {
	case orchestrator.RightsOfJob:
		return []string{p.Text("status.of-job", rightsLine(p, r))}
	case orchestrator.RightsOfMember:
		return []string{p.Text("status.of-member", rightsLine(p, r))}
	}
	return nil
}

// rightsLine describes in one line which actions a job may take without an approval.
func rightsLine(p lang.Printer, r orchestrator.Rights) string {
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

// rightsFields returns the fields with which users change the rights of a job. Users cannot choose the bypass mode, in
// which agents need no approvals. Only the configuration file can set this mode.
func rightsFields(p lang.Printer) []field {
	mode := field{code: "p", label: p.Text("cron.permission"), value: func(j orchestrator.Job) string {
		return rightsMode(p, j.Rights)
	}}
	for _, m := range []cli.PermissionMode{"", cli.Plan, cli.Ask, cli.AcceptEdits, cli.Auto} {
		mode.choices = append(mode.choices, one(rightsMode(p, orchestrator.Rights{Mode: m}),
			func(j *orchestrator.Job) *cli.PermissionMode { return &j.Rights.Mode }, m))
	}
	return []field{mode,
		linesField{
			code: "u", label: p.Text("cron.rules"), ask: p.Text("cron.ask-rules"),
			none: p.Text("cron.rules-none"), noneButton: p.Text("cron.rules-none-button"),
			at: func(r *orchestrator.Rights) *[]string { return &r.Rules },
		}.field(p),
		linesField{
			code: "w", label: p.Text("cron.tools"), ask: p.Text("cron.ask-tools"),
			none: p.Text("cron.tools-all"), noneButton: p.Text("cron.tools-all-button"),
			at: func(r *orchestrator.Rights) *[]string { return &r.Tools.Only },
		}.field(p),
	}
}

// linesField describes a field with a list as its value. Users enter one element per line.
type linesField struct {
	code, label, ask string
	none, noneButton string // text for an empty list, and label of the button that empties the list
	at               func(*orchestrator.Rights) *[]string
}

func (l linesField) field(p lang.Printer) field {
	return field{
		code: l.code, label: l.label, ask: l.ask,
		value: func(j orchestrator.Job) string {
			return cmp.Or(render.Cut(p.List(*l.at(&j.Rights)...), rightsShown), l.none)
		},
		read: func(_ orchestrator.Jobs, j *orchestrator.Job, text string) error {
			var list []string
			for line := range strings.Lines(text) {
				if line = strings.TrimSpace(line); line != "" {
					list = append(list, line)
				}
			}
			*l.at(&j.Rights) = list
			return nil // EditJob and CheckJob validate the elements
		},
		part: part(func(j *orchestrator.Job) *[]string { return l.at(&j.Rights) }),
		choices: []choice{{
			label: l.noneButton,
			set:   func(j *orchestrator.Job) { *l.at(&j.Rights) = nil },
			is:    func(j orchestrator.Job) bool { return len(*l.at(&j.Rights)) == 0 },
		}},
	}
}
