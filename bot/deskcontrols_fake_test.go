package bot

import (
	"context"
	"slices"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// deskFake has no open requests, and records rules and modes.

func (d *deskFake) Decide(context.Context, orchestrator.ApprovalID, string, orchestrator.Press, orchestrator.Verdict) (orchestrator.Approval, error) {
	return orchestrator.Approval{}, orchestrator.ErrNoApproval
}

func (d *deskFake) Approval(context.Context, orchestrator.ApprovalID, orchestrator.ConversationID) (orchestrator.Approval, error) {
	return orchestrator.Approval{}, orchestrator.ErrNoApproval
}

func (d *deskFake) Permissions(context.Context, orchestrator.ConversationID) (orchestrator.Permissions, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return orchestrator.Permissions{Mode: d.status.Permission, Rules: slices.Clone(d.rules), Cannot: d.cannot}, d.fail
}

func (d *deskFake) Revoke(_ context.Context, id orchestrator.RuleID, by orchestrator.Press) error {
	d.note("revoke %s by %d", id, by.Person)
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.rules, func(r orchestrator.Rule) bool { return r.ID == id })
	if i < 0 {
		return orchestrator.ErrNoRule
	}
	d.rules = slices.Delete(slices.Clone(d.rules), i, i+1)
	return d.fail
}

func (d *deskFake) Audit(context.Context, time.Time, int) ([]orchestrator.AuditEntry, error) {
	return nil, d.fail
}

func (d *deskFake) SetTools(_ context.Context, id orchestrator.ConversationID, list cli.ToolList, _ orchestrator.PersonID) error {
	d.note("tools %s %v", id.Key(), list)
	return d.fail
}

func (d *deskFake) Set(_ context.Context, id orchestrator.ConversationID, of orchestrator.Setting, word string) error {
	d.note("%s %s %s", of, id.Key(), word)
	return d.fail
}

func (d *deskFake) Display(context.Context, orchestrator.ConversationID) (orchestrator.DisplayMode, error) {
	return orchestrator.DisplayPlain, d.fail
}

func (d *deskFake) SetDisplay(_ context.Context, id orchestrator.ConversationID, mode orchestrator.DisplayMode) error {
	d.note("display %s %s", id.Key(), mode)
	return d.fail
}

func (d *deskFake) Steer(_ context.Context, turn cli.TurnID, by orchestrator.Press) error {
	d.note("steer %s by %d", turn, by.Person)
	return d.fail
}

func (d *deskFake) Subject(context.Context, orchestrator.ConversationID, cli.TurnID) (orchestrator.Subject, error) {
	return d.subject, d.fail
}

func (d *deskFake) StartOver(_ context.Context, message int, turn cli.TurnID, by orchestrator.Press) error {
	d.note("start over %d with %s", message, turn)
	return d.fail
}

func (d *deskFake) Interrupt(_ context.Context, turn cli.TurnID, by orchestrator.Press) error {
	d.note("interrupt %s by %d", turn, by.Person)
	return d.fail
}

func (d *deskFake) Restart(_ context.Context, turn cli.TurnID, text string, by orchestrator.Press) (orchestrator.Receipt, error) {
	d.note("restart %s %q by %d", turn, text, by.Person)
	return orchestrator.Receipt{Turn: turn + "'", Ahead: 1}, d.fail
}

func (d *deskFake) LogInOf(_ context.Context, _ orchestrator.ConversationID,
	id orchestrator.LogInID) (orchestrator.AgentEnv, error) {
	of, _ := id.Env()
	return of, d.fail
}

func (d *deskFake) Logins(orchestrator.AgentEnv) []cli.Login {
	return []cli.Login{{ID: "device", Kind: cli.LoginByCode}}
}

func (d *deskFake) LogIn(by orchestrator.Press, of orchestrator.AgentEnv, way cli.Login) error {
	d.note("log in %s by %s for %d", of.Agent, way.ID, by.Person)
	return d.fail
}

func (d *deskFake) CancelLogIn(of orchestrator.AgentEnv) bool {
	d.note("cancel the log-in of %s", of.Agent)
	return true
}

func (d *deskFake) UseToken(_ context.Context, by orchestrator.Press, of orchestrator.AgentEnv, _ cli.Login,
	_ string) error {
	d.note("use a token for %s by %d", of.Agent, by.Person)
	return d.fail
}
