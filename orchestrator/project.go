package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"ductor/cli"
)

// projectAsk begins the id of the one ask that ductor makes in the agent's place.
const projectAsk = "project-"

// projectAllowed says whether a turn of the conversation may use the settings of the project it works in: there are
// none, or a rule of the chat allows them as they are.
func (o *Orchestrator) projectAllowed(ctx context.Context, conv ConversationID, t Turn, dir string) (cli.ProjectSettings, error) {
	approval, there := o.projectApproval(t, dir)
	if !there {
		return cli.WithProject, nil
	}
	ask := Ask{Conversation: conv, Agent: t.Agent, Dir: dir, Approval: &approval}
	if !t.Prompt.Rights.ofChat() || approval.Missing != "" || o.touchesOwn(ask) {
		return cli.WithoutProject, nil
	}
	rule, err := o.chatRule(ctx, ask)
	if err != nil {
		return cli.WithoutProject, fmt.Errorf("load rules: %w", err)
	}
	if rule == "" {
		return cli.WithoutProject, nil
	}
	return cli.WithProject, nil
}

// projectApproval is the question whether the agent of a turn may use the settings of the project in dir; false if there are none.
func (o *Orchestrator) projectApproval(t Turn, dir string) (cli.ApprovalAsked, bool) {
	fields, missing := o.opts.Gateway.ProjectFields(t.Sandbox, t.Agent, dir)
	if len(fields) == 0 && missing == "" {
		return cli.ApprovalAsked{}, false
	}
	sum := sha256.New()
	for _, f := range fields {
		fmt.Fprintf(sum, "%q=%q\n", f.Name, f.Value)
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	input, err := json.Marshal(map[string]string{projectDigestField: digest})
	if err != nil { // a map of strings can always be encoded
		missing = "the settings"
	}
	fields = append(fields, cli.Field{Name: projectDigestField, Value: digest, Weight: cli.LabelField})
	return cli.ApprovalAsked{Tool: cli.ProjectTool, Title: dir, Fields: fields, Missing: missing, Input: input, Deaf: true}, true
}

const projectDigestField = "sha256"

// projectRule is the rule that allows the settings that p lists as they are.
func projectRule(base Rule, p cli.ApprovalAsked) Rule {
	base.Kind, base.Value = RuleSame, projectDigest(p)
	base.Text = fmt.Sprintf("%s(of %s, as listed, %s)", p.Tool, base.Dir, base.Value[:min(len(base.Value), 12)])
	return base
}

// projectDigest is equal for equal settings; it is computed before secrets are taken out of them.
func projectDigest(p cli.ApprovalAsked) string {
	fields, _ := fieldsOf(p.Input)
	digest, _ := fields[projectDigestField].(string)
	return digest
}

// askForProject has users decide about the settings of a project that the turn would start without, and changes req if
// they allow them. It waits for the decision, for its expiry or for the end of ctx. Only a turn with the rights of the
// chat asks, and a session only once about the same settings.
func (o *Orchestrator) askForProject(ctx context.Context, a *approvals, t Turn, req *cli.Request, show func(cli.Event)) {
	approval, there := o.projectApproval(t, req.Dir)
	if !there || !t.Prompt.Rights.ofChat() || o.opts.Asks == nil {
		return
	}
	id, err := o.secret(5)
	if err != nil {
		a.log.Error("ask about the settings of a project", "err", err)
		return
	}
	approval.ID = cli.AskID(projectAsk + id)
	probe := Ask{Agent: t.Agent, Dir: req.Dir, Approval: &approval}
	before, err := o.opts.Store.FindSameAsk(a.keep, t.Session, digestOf(probe))
	switch {
	case err == nil && (before.State == AskDenied || before.State == AskExpired):
		return
	case err != nil && !errors.Is(err, ErrNoAsk):
		a.log.Error("look for a decision on the settings of a project", "err", err)
	}
	show(approval)
	select {
	case d := <-a.project:
		if d.Allow {
			req.Project = cli.WithProject
		}
	case <-ctx.Done():
	}
}

func isProjectAsk(id cli.AskID) bool { return strings.HasPrefix(string(id), projectAsk) }
