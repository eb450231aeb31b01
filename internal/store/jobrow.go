package store

import (
	"cmp"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

type jobRow struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Source   string   `json:"source"`
	Person   int64    `json:"person,omitempty"`
	Prompt   string   `json:"prompt,omitempty"`
	Schedule string   `json:"schedule,omitempty"`
	Zone     string   `json:"zone,omitempty"`
	Session  string   `json:"session"`
	Agent    string   `json:"agent,omitempty"`
	Model    string   `json:"model,omitempty"`
	Effort   string   `json:"effort,omitempty"`
	Dir      string   `json:"dir,omitempty"`
	Sandbox  string   `json:"sandbox,omitempty"`
	Timeout  int64    `json:"timeout_ns,omitempty"`
	Quiet    quietRow `json:"quiet,omitzero"`
	Missed   string   `json:"missed"`
	Overlap  string   `json:"overlap"`
	Retries  int      `json:"retries,omitempty"`
	Backoff  int64    `json:"backoff_ns,omitempty"`
	OKWord   string   `json:"ok_word,omitempty"`
	Mode     string   `json:"permission,omitempty"`
	Rules    []string `json:"rules,omitempty"`
	Tools    []string `json:"tools,omitempty"`
	No       []string `json:"denied_tools,omitempty"`
	Of       string   `json:"rights,omitempty"` // Rights.Of of the job; "" stands for RightsOfJob
}

type quietRow struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Policy string `json:"policy"`
}

func rowOfJob(j orchestrator.Job) jobRow {
	return jobRow{
		Name: j.Name, Kind: string(j.Kind), Source: jobSource(j), Person: int64(j.Person), Prompt: j.Prompt,
		Schedule: j.Schedule, Zone: j.Zone, Session: j.Session, Agent: string(j.Agent), Model: string(j.Model),
		Effort: string(j.Effort), Dir: j.Dir, Sandbox: j.Sandbox, Timeout: int64(j.Timeout),
		Quiet:  quietRow{From: j.QuietFrom, To: j.QuietTo, Policy: j.QuietPolicy},
		Missed: j.Missed, Overlap: j.Overlap, Retries: j.Retries, Backoff: int64(j.Backoff), OKWord: j.OKWord,
		Mode: string(j.Rights.Mode), Rules: j.Rights.Rules, Tools: j.Rights.Tools.Only, No: j.Rights.Tools.Denied,
		Of: jobRights(j),
	}
}

func jobRights(j orchestrator.Job) string {
	if j.Rights.Of == orchestrator.RightsOfJob {
		return ""
	}
	return string(j.Rights.Of)
}

func jobSource(j orchestrator.Job) string {
	if j.Configured {
		return configuredJob
	}
	return "chat"
}

const configuredJob = "config"

// decodeJob decodes the column "spec", which contains the fields of a job that have no column of their own.
func decodeJob(text string, j *orchestrator.Job) error {
	var r jobRow
	if err := decode(text, &r); err != nil {
		return err
	}
	j.Name, j.Kind, j.Configured = r.Name, orchestrator.JobKind(r.Kind), r.Source == configuredJob
	j.Person = orchestrator.PersonID(r.Person)
	j.Prompt, j.Schedule, j.Zone = r.Prompt, r.Schedule, r.Zone
	j.Session, j.Agent, j.Model = r.Session, cli.Agent(r.Agent), cli.ModelID(r.Model)
	j.Effort, j.Dir, j.Sandbox, j.Timeout = cli.Effort(r.Effort), r.Dir, r.Sandbox, time.Duration(r.Timeout)
	j.QuietFrom, j.QuietTo, j.QuietPolicy = r.Quiet.From, r.Quiet.To, r.Quiet.Policy
	j.Missed, j.Overlap = r.Missed, r.Overlap
	j.Rights = orchestrator.Rights{
		Of: cmp.Or(orchestrator.RightsOf(r.Of), orchestrator.RightsOfJob), Mode: cli.PermissionMode(r.Mode),
		Rules: r.Rules, Tools: cli.ToolList{Only: r.Tools, Denied: r.No},
	}
	j.Retries, j.Backoff, j.OKWord = r.Retries, time.Duration(r.Backoff), r.OKWord
	return nil
}
