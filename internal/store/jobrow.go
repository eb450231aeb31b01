package store

import (
	"ductor/cli"
	"ductor/orchestrator"
)

// jobRow is a job with what is stored in another form. The other fields have a column.
type jobRow struct {
	orchestrator.Job
	Source string   `json:"source"`
	Quiet  quietRow `json:"quiet,omitzero"`
	Mode   string   `json:"permission,omitempty"`
	Rules  []string `json:"rules,omitempty"`
	Tools  []string `json:"tools,omitempty"`
	No     []string `json:"denied_tools,omitempty"`
}

type quietRow struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Policy string `json:"policy"`
}

func rowOfJob(j orchestrator.Job) jobRow {
	return jobRow{
		Job: j, Source: jobSource(j), Quiet: quietRow{From: j.QuietFrom, To: j.QuietTo, Policy: j.QuietPolicy},
		Mode: string(j.Rights.Mode), Rules: j.Rights.Rules, Tools: j.Rights.Tools.Only, No: j.Rights.Tools.Denied,
	}
}

// jobSource is the stored word for what defines a job.
func jobSource(j orchestrator.Job) string {
	if j.Configured {
		return configuredJob
	}
	return "chat"
}

const configuredJob = "config"

// decodeJob fills in the fields without a column.
func decodeJob(text string, j *orchestrator.Job) error {
	r := jobRow{Job: *j}
	if err := decode(text, &r); err != nil {
		return err
	}
	*j = r.Job
	j.Configured = r.Source == configuredJob
	j.QuietFrom, j.QuietTo, j.QuietPolicy = r.Quiet.From, r.Quiet.To, r.Quiet.Policy
	j.Rights = orchestrator.Rights{
		Of: orchestrator.RightsOfJob, Mode: cli.PermissionMode(r.Mode), Rules: r.Rules, Tools: cli.ToolList{Only: r.Tools, Denied: r.No},
	}
	return nil
}
