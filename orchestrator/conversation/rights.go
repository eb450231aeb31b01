package conversation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/approval"
)

// permissionOf returns the permission mode of a conversation for turns in an environment.
func (e *Engine) permissionOf(c orchestrator.Conversation, in cli.Sandbox) cli.PermissionMode {
	switch {
	case c.Permission == "":
		return e.turns().Mode
	case elsewhere(c, in), c.Permission == cli.Bypass && !e.bypassed(c, in):
		return cli.Ask
	}
	return c.Permission
}

// elsewhere reports whether the conversation's permission mode does not apply in the given environment, because a user
// chose the mode for another environment.
func elsewhere(c orchestrator.Conversation, in cli.Sandbox) bool {
	return orchestrator.Grants(c.Permission) && c.GrantedIn != in
}

// endElsewhere resets the permission mode of the conversation if a user chose the mode for another environment than
// that of the turn. It returns the mode that it reset, or "".
func (e *Engine) endElsewhere(ctx context.Context, conv *orchestrator.Conversation,
	t orchestrator.Turn) (ended cli.PermissionMode) {
	if !t.Prompt.Rights.OfChat() || !elsewhere(*conv, t.Sandbox) {
		return ""
	}
	ended = conv.Permission
	ask := func(c *orchestrator.Conversation) {
		if elsewhere(*c, t.Sandbox) { // check again: a user may have chosen another mode in the meantime
			c.SetMode(cli.Ask, "", time.Time{})
		}
	}
	err := e.change(ctx, conv.ID, ask, orchestrator.AuditEntry{What: orchestrator.AuditMode, Turn: t.ID,
		Title: string(cli.Ask), Reason: orchestrator.AuditElsewhere})
	if err != nil {
		// Only log the error: permissionOf ignores a mode that a user chose for another environment.
		e.log.Error("end a permission mode of another environment", "turn", t.ID, "err", err)
	}
	ask(conv)
	return ended
}

func (e *Engine) modeFor(conv orchestrator.Conversation, r orchestrator.Rights, in cli.Sandbox) cli.PermissionMode {
	return r.ModeIn(e.permissionOf(conv, in), e.turns().Mode)
}

// toolLists returns the lists of allowed and forbidden tools that apply to a conversation's turns in a directory.
func (e *Engine) toolLists(conv orchestrator.Conversation, dir string) []cli.ToolList {
	role := e.roleFor(conv)
	return []cli.ToolList{{Denied: e.turns().DeniedTools}, e.projectOf(dir).Tools, role.Tools, conv.Tools}
}

func (e *Engine) boundsOf(conv orchestrator.Conversation, dir string) orchestrator.Bounds {
	return e.roleFor(conv).Bounds.With(e.projectOf(dir).Bounds)
}

// grant adds permissions to a request: directories, tools, a limit of model answers, and the permission mode. The
// allowed tools of the configuration apply only to turns with the rights of the chat. The forbidden tools of the
// configuration apply to all turns.
func (e *Engine) grant(req *cli.Request, conv orchestrator.Conversation, r orchestrator.Rights) {
	req.Permission = e.modeFor(conv, r, req.Sandbox)
	req.ToolLists = append(e.toolLists(conv, req.Dir), r.Tools)
	bounds := e.boundsOf(conv, req.Dir)
	req.AddDirs, req.MaxTurns = append(req.AddDirs, bounds.AddDirs...), bounds.MaxTurns
	if r.OfChat() {
		req.AllowedTools = slices.Concat(e.turns().AllowedTools, bounds.AllowedTools)
	}
	// A bypass with a time limit may end while the turn runs. Then the agent must be able to ask a user.
	forever := req.Permission == cli.Bypass && !(r.OfChat() && e.bypassed(conv, req.Sandbox))
	req.Attended = e.opts.Screen != nil && !forever
}

// Decide implements orchestrator.Approvals. Two choices also change the permission mode of the conversation: AllowEdits
// sets it to accept-edits, and allowing a plan ends plan mode.
func (e *Engine) Decide(ctx context.Context, id orchestrator.ApprovalID, nonce string, by orchestrator.Press,
	v orchestrator.Verdict) (orchestrator.Approval, error) {
	a, err := e.approvals.Decide(ctx, id, nonce, by, v)
	if err != nil || !a.Edits {
		return a, err
	}
	conv, err := e.load(ctx, a.Conversation)
	if err != nil {
		return a, err
	}
	mode := approval.ModeAfter(a, v.Choice, e.permissionOf(conv, a.Sandbox))
	if mode == "" {
		return a, nil
	}
	err = e.change(ctx, a.Conversation, func(c *orchestrator.Conversation) {
		// Do not overwrite a mode that a user has chosen since the request.
		if e.permissionOf(*c, a.Sandbox) == e.permissionOf(conv, a.Sandbox) {
			c.SetMode(mode, a.Sandbox, time.Time{})
		}
	}, orchestrator.AuditEntry{What: orchestrator.AuditMode, Turn: a.Turn, Title: string(mode), By: by.Person})
	if err != nil {
		return a, fmt.Errorf("change the mode of the conversation: %w", err)
	}
	return a, nil
}
