package cron

import (
	"strings"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/orchestrator"
)

// RightsLine says what a job may do without an approval.
func RightsLine(r orchestrator.Rights) string {
	line := "Rights: " + rightsMode(r)
	if len(r.Rules) > 0 {
		line += "; goes through: " + render.Cut(strings.Join(r.Rules, ", "), rightsShown)
	}
	if len(r.Tools) > 0 {
		line += "; only the tools " + render.Cut(strings.Join(r.Tools, ", "), rightsShown)
	}
	return line
}

const rightsShown = 300

func rightsMode(r orchestrator.Rights) string {
	if r.Mode == "" {
		return "at most ask"
	}
	return string(r.Mode)
}

// rightsFields are the rights of a job that a user can change. Only the configuration grants bypass without end.
func rightsFields() []field {
	mode := field{code: "p", label: "Permission", value: func(j orchestrator.Job) string { return rightsMode(j.Rights) }}
	for _, m := range []cli.PermissionMode{"", cli.Plan, cli.Ask, cli.AcceptEdits, cli.Auto} {
		mode.choices = append(mode.choices, choice{
			label: rightsMode(orchestrator.Rights{Mode: m}), set: func(j *orchestrator.Job) { j.Rights.Mode = m },
			is: func(j orchestrator.Job) bool { return j.Rights.Mode == m },
		})
	}
	return []field{mode,
		rightsList("u", "Rules", "what needs no approval, one a line, such as: Bash(git status *)", "None",
			func(r *orchestrator.Rights) *[]string { return &r.Rules }),
		rightsList("w", "Tools", "the only tools it may use, one a line, in the words of its agent, such as: Read", "All",
			func(r *orchestrator.Rights) *[]string { return &r.Tools }),
	}
}

// rightsList is a field that is a list of lines; empty is the word for none.
func rightsList(code, label, ask, empty string, at func(*orchestrator.Rights) *[]string) field {
	return field{
		code: code, label: label, ask: ask,
		value: func(j orchestrator.Job) string {
			return orWord(render.Cut(strings.Join(*at(&j.Rights), ", "), rightsShown), strings.ToLower(empty))
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
			label: empty, set: func(j *orchestrator.Job) { *at(&j.Rights) = nil },
			is: func(j orchestrator.Job) bool { return len(*at(&j.Rights)) == 0 },
		}},
	}
}
