package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
)

// maxPrompt limits the prompt of a job in bytes, because the user must read all of it to allow the job.
const maxPrompt = 4000

type schedule struct {
	When   string `json:"when" jsonschema:"the schedule: a cron line, or words such as 'every weekday at 9:00', 'tomorrow at 14:00', 'in 2 hours'"`
	Prompt string `json:"prompt" jsonschema:"what the agent of the job is asked"`
	Name   string `json:"name,omitempty" jsonschema:"a short name of the job"`
}

func (t *toolset) addSchedule() {
	if t.s.opts.Jobs == nil {
		return
	}
	registerTool(t, "schedule",
		"Have a prompt run at a time, or again and again. The user is asked first.",
		func(in schedule) string { return in.When + ": " + in.Prompt }, t.schedule)
}

func (t *toolset) schedule(ctx context.Context, c call, in schedule) (string, error) {
	if !c.Turn.Prompt.Rights.OfListed() {
		return "", errors.New("only a turn that a listed user asked for in the chat can schedule something")
	}
	if len(in.Prompt) > maxPrompt {
		return "", fmt.Errorf("the prompt has %d bytes, and %d are the limit", len(in.Prompt), maxPrompt)
	}
	st, err := t.job(c, in)
	if err != nil {
		return "", jobError(err)
	}
	asked := approval(c, "schedule", st.Job.When, in.Prompt, struct {
		When   string `json:"when"` // the schedule in words
		Line   string `json:"schedule"`
		Prompt string `json:"prompt"`
		Name   string `json:"name,omitempty"`
	}{st.Job.When, st.Job.Schedule, in.Prompt, in.Name}, "schedule")
	d, err := t.s.opts.Turns.AskUser(ctx, c.Turn.ID, asked)
	if err != nil {
		return "", fmt.Errorf("ask the user: %w", err)
	}
	if !d.Allow {
		return strings.TrimSpace("The user did not allow it. " + d.Reason), nil
	}
	st, err = t.s.opts.Jobs.AddJob(ctx, st.Job)
	if err != nil {
		return "", jobError(err)
	}
	return fmt.Sprintf("The job %q runs %s; next at %s.", st.Job.Name, st.Job.When, st.Next), nil
}

// job checks the arguments of a call and returns the job that they describe.
func (t *toolset) job(c call, in schedule) (orchestrator.JobStatus, error) {
	line, zone, err := t.s.opts.Jobs.ReadSchedule(c.Turn.Prompt.Conversation.Shown(), in.When, "")
	if err != nil {
		return orchestrator.JobStatus{}, err
	}
	return t.s.opts.Jobs.CheckJob(orchestrator.Job{
		ID: orchestrator.JobID(t.s.opts.NewID()), Conversation: c.Turn.Prompt.Conversation.Shown(),
		Person: c.Turn.Prompt.Person, Name: cli.OneLine(in.Name, maxOption), Prompt: in.Prompt,
		JobTiming: orchestrator.JobTiming{Schedule: line, QuietHours: orchestrator.QuietHours{Zone: zone}},
	})
}

// jobError converts an error of orchestrator.Jobs to a text for the agent.
func jobError(err error) error {
	if bad := (*orchestrator.BadJob)(nil); errors.As(err, &bad) {
		return bad
	}
	return fmt.Errorf("schedule: %w", err)
}

// approval returns a request for the user's approval. The user sees the heading, the text, and then the fields of
// input. The last arguments name the fields that the user does not see, because the heading already contains their
// content.
func approval(c call, tool, heading, text string, input any, inHeading ...string) cli.ApprovalAsked {
	asked := cli.ApprovalAsked{Tool: Name + "." + tool, Title: cli.OneLine(heading+": "+text, titleBytes),
		Detail: heading + "\n\n" + text}
	raw, err := json.Marshal(input)
	if err != nil { // cannot happen with structs of strings
		asked.Missing = "what it would do"
	}
	asked.Input = raw
	read := cli.Reading{Dir: c.Request.Dir, Said: map[string]string{}, Labels: inHeading}
	for _, l := range cli.Leaves(raw) {
		if l.Value == heading || l.Value == text {
			read.Said[l.Name] = l.Value
		}
	}
	asked.Fields = read.Fields(raw)
	asked.Effect = cli.EffectOf(raw, c.Request.Dir, nil)
	return asked
}
