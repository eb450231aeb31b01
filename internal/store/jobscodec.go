package store

import (
	"time"

	"ductor/cli"
	"ductor/heartbeat"
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
}

type quietRow struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Policy string `json:"policy"`
}

func rowOfJob(j heartbeat.Job) jobRow {
	return jobRow{
		Name: j.Name, Kind: string(j.Kind), Source: string(j.Source), Person: int64(j.Person), Prompt: j.Prompt,
		Schedule: j.Schedule, Zone: j.Zone, Session: string(j.Session), Agent: string(j.Agent), Model: string(j.Model),
		Effort: string(j.Effort), Dir: j.Dir, Sandbox: j.Sandbox, Timeout: int64(j.Timeout),
		Quiet:  quietRow{From: j.Quiet.From, To: j.Quiet.To, Policy: string(j.Quiet.Policy)},
		Missed: string(j.Missed), Overlap: string(j.Overlap), Retries: j.Retries, Backoff: int64(j.Backoff), OKWord: j.OKWord,
		Mode: string(j.Rights.Mode), Rules: j.Rights.Rules, Tools: j.Rights.Tools,
	}
}

// decodeJob fills in what has no column of its own.
func decodeJob(text string, j *heartbeat.Job) error {
	var r jobRow
	if err := decode(text, &r); err != nil {
		return err
	}
	j.Name, j.Kind, j.Source, j.Person = r.Name, heartbeat.Kind(r.Kind), heartbeat.Source(r.Source), orchestrator.PersonID(r.Person)
	j.Prompt, j.Schedule, j.Zone = r.Prompt, r.Schedule, r.Zone
	j.Session, j.Agent, j.Model = heartbeat.SessionMode(r.Session), cli.Agent(r.Agent), cli.ModelID(r.Model)
	j.Effort, j.Dir, j.Sandbox, j.Timeout = cli.Effort(r.Effort), r.Dir, r.Sandbox, time.Duration(r.Timeout)
	j.Quiet = heartbeat.Quiet{From: r.Quiet.From, To: r.Quiet.To, Policy: heartbeat.QuietPolicy(r.Quiet.Policy)}
	j.Missed, j.Overlap = heartbeat.Missed(r.Missed), heartbeat.Overlap(r.Overlap)
	j.Rights = orchestrator.Rights{Of: orchestrator.RightsOfJob, Mode: cli.PermissionMode(r.Mode), Rules: r.Rules, Tools: r.Tools}
	j.Retries, j.Backoff, j.OKWord = r.Retries, time.Duration(r.Backoff), r.OKWord
	return nil
}
