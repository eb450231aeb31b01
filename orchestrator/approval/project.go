package approval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
)

// ProjectSettings returns WithProject if a rule of the chat lets the agent use the agent settings of a turn's project.
// The rule must match the current content of the settings. It returns EmptyProject if the project has no such settings.
func (s *Service) ProjectSettings(ctx context.Context, conv orchestrator.ConversationID, t orchestrator.Turn,
	dir string) (cli.ProjectSettings, error) {
	asked, there := s.projectApproval(t, dir)
	if !there {
		return cli.EmptyProject, nil
	}
	approval := orchestrator.ApprovalRequest{Conversation: conv, Agent: t.Agent, Dir: dir, Sandbox: t.Sandbox,
		Request: &asked}
	if !t.Prompt.Rights.OfChat() || asked.Missing != "" || s.touchesOwn(approval) {
		return cli.WithoutProject, nil
	}
	rule, err := s.chatRule(ctx, approval)
	if err != nil {
		return cli.WithoutProject, fmt.Errorf("load rules: %w", err)
	}
	if rule == "" {
		return cli.WithoutProject, nil
	}
	return cli.WithProject, nil
}

// projectApproval returns a request for permission to use the agent settings of the project in dir. It returns false if
// the project has no such settings.
func (s *Service) projectApproval(t orchestrator.Turn, dir string) (cli.ApprovalAsked, bool) {
	fields, missing := s.opts.Agents.ProjectFields(t.Sandbox, t.Agent, dir)
	if len(fields) == 0 && missing == "" {
		return cli.ApprovalAsked{}, false
	}
	sum := sha256.New()
	for _, f := range fields {
		if f.Weight != cli.LabelField {
			fmt.Fprintf(sum, "%q=%q\n", f.Name, f.Value)
		}
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	fields = append(fields, cli.Field{Name: projectDigestField, Value: digest, Weight: cli.LabelField})
	return cli.ApprovalAsked{Tool: cli.ProjectTool, Title: dir, Fields: fields, Missing: missing,
		Input: []byte(`{"` + projectDigestField + `":"` + digest + `"}`), Deaf: true}, true
}

// changedSettings returns a field that tells users which settings have changed since they last allowed the settings in
// the conversation. It returns nil if users never allowed them, or if nothing has changed.
func (r *Requests) changedSettings(asked cli.ApprovalAsked) []cli.Field {
	t := r.turn.Turn
	before, err := r.s.opts.Store.LastProjectApproval(r.recordContext(), t.Prompt.Conversation.Shown(), t.Agent,
		r.turn.Dir)
	if err != nil || before.Request == nil {
		if !errors.Is(err, orchestrator.ErrNoApproval) {
			r.log.Error("load the last approval of a project's settings", "err", err)
		}
		return nil
	}
	changed := cli.SettingsChanges(before.Request.Fields, asked.Fields)
	if len(changed) == 0 {
		return nil
	}
	return []cli.Field{{Name: cli.ChangedSettings, Value: strings.Join(changed, ", "), Weight: cli.LabelField}}
}

const projectDigestField = "sha256"

// projectRule returns a copy of base that allows only the current project settings.
func projectRule(base orchestrator.Rule, p cli.ApprovalAsked) orchestrator.Rule {
	base.Kind, base.Value = orchestrator.RuleSame, projectDigest(p)
	base.Text = fmt.Sprintf("%s(of %s, as listed, %s)", p.Tool, base.Dir, base.Value[:min(len(base.Value), 12)])
	return base
}

// projectDigest returns a hash of project settings. Call it before secrets are removed from the settings.
func projectDigest(p cli.ApprovalAsked) string {
	i := slices.IndexFunc(p.Fields, func(f cli.Field) bool {
		return f.Name == projectDigestField && f.Weight == cli.LabelField
	})
	if i < 0 {
		return ""
	}
	return p.Fields[i].Value
}

// AskForProject asks users whether the turn may use the agent settings of its project. It calls show with the question,
// and waits until a user decides, the deadline passes, or ctx is done. If no user allows the settings, the turn starts
// without them.
//
// It asks only for a turn with the rights of the chat. In one session, it asks only once about the same settings.
func (r *Requests) AskForProject(ctx context.Context, show func(cli.Event)) cli.ProjectSettings {
	t, opts := r.turn.Turn, r.s.opts
	asked, there := r.s.projectApproval(t, r.turn.Dir)
	if !there {
		return cli.EmptyProject
	}
	if !t.Prompt.Rights.OfChat() || opts.Screen == nil {
		return cli.WithoutProject
	}
	id := cli.ApprovalID("project-" + random(5))
	decided, err := r.expect(id, Helper{})
	if err != nil {
		r.log.Error("ask about the settings of a project", "err", err)
		return cli.WithoutProject
	}
	defer r.giveUp(id)
	asked.ID = id
	probe := orchestrator.ApprovalRequest{Agent: t.Agent, Dir: r.turn.Dir, Request: &asked}
	before, err := opts.Store.FindSameApproval(r.recordContext(), t.Session, digestOf(probe))
	switch {
	case err == nil && (before.State == orchestrator.ApprovalDenied || before.State == orchestrator.ApprovalExpired):
		return cli.WithoutProject
	case err != nil && !errors.Is(err, orchestrator.ErrNoApproval):
		r.log.Error("load the decision on the settings of a project", "err", err)
	}
	asked.Fields = append(asked.Fields, r.changedSettings(asked)...)
	show(asked)
	select {
	case d := <-decided:
		// The settings may have changed while the question was open. The user did not see the new settings, so they are
		// not allowed.
		if now, _ := r.s.projectApproval(t, r.turn.Dir); d.Allow && projectDigest(now) == projectDigest(asked) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.turn.Project = cli.WithProject
			return cli.WithProject
		}
	case <-ctx.Done():
	}
	return cli.WithoutProject
}
