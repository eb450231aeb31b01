package approval

import (
	"context"
	"crypto/subtle"
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
)

// reasonBytes is the maximum length of the reason that a user gives for a decision. ductor cuts a longer reason.
const reasonBytes = 4000

// Decide implements orchestrator.Approvals.
func (s *Service) Decide(ctx context.Context, id orchestrator.ApprovalID, nonce string, by orchestrator.Press,
	v orchestrator.Verdict) (orchestrator.Approval, error) {
	approval, err := s.opts.Store.FindApproval(ctx, id)
	if err != nil {
		return orchestrator.Approval{}, notFound(err)
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(approval.Nonce), []byte(nonce)) != 1:
		return orchestrator.Approval{}, orchestrator.ErrNoApproval
	case approval.Conversation != by.Conversation:
		return orchestrator.Approval{}, orchestrator.ErrElsewhere
	case !by.May(orchestrator.DecideRequests) || !mayDecide(approval, by.Person):
		return orchestrator.Approval{}, orchestrator.ErrNotApprover
	}
	if err := approval.WhyClosed(s.opts.Now()); err != nil {
		return s.redeliver(ctx, approval), err
	}
	if r := s.of(approval.Turn); r != nil && approval.Request != nil && v.Choice != orchestrator.Deny &&
		r.targetMoved(approval.ApprovalRequest) {
		return approval, orchestrator.ErrPathMoved
	}
	d, err := s.decision(approval, by, v)
	if err != nil {
		return approval, err
	}
	// Copy the user's files into the agent's environment first. If ductor crashes before it has stored the decision,
	// the user only has to decide again. Once the decision is stored, the next process passes it to the agent.
	if len(v.Files) > 0 {
		if err := s.opts.Agents.Bring(ctx, approval.Sandbox, orchestrator.Paths(v.Files)); err != nil {
			s.log.Warn("bring the files of an answer", "approval", id, "err", err)
			return approval, fmt.Errorf("%w: %w", orchestrator.ErrNotBrought, err)
		}
	}
	now, won, err := s.opts.Store.DecideApproval(ctx, d)
	switch {
	case err != nil:
		return approval, fmt.Errorf("decide approval: %w", err)
	case !won && now.State == orchestrator.ApprovalOpen:
		// The turn has ended or was aborted, so its approvals are withdrawn.
		return now, orchestrator.ErrApprovalWithdrawn
	case !won:
		return now, now.WhyClosed(s.opts.Now())
	}
	return s.decided(context.WithoutCancel(ctx), now, d, v)
}

// close stores the decision of a rule, of the permission mode or of a time limit. It returns false if the approval is
// no longer open.
func (r *Requests) close(id orchestrator.ApprovalID, d orchestrator.Decision) (orchestrator.Approval, bool, error) {
	d.Decided = r.s.opts.Now()
	return r.s.opts.Store.DecideApproval(r.recordContext(), orchestrator.ApprovalDecision{Approval: id, Decision: d})
}

// decision converts a verdict into the decision to store. It returns ErrBadChoice if the approval does not offer the
// choice.
func (s *Service) decision(approval orchestrator.Approval, by orchestrator.Press,
	v orchestrator.Verdict) (orchestrator.ApprovalDecision, error) {
	d := orchestrator.ApprovalDecision{
		Approval: approval.ID, Decision: orchestrator.Decision{By: by.Person, Decided: s.opts.Now()},
		Choice: v.Choice, Updates: by.Updates, Secret: isSecret(approval.ApprovalRequest),
	}
	session, lasting := offeredRules(approval.ApprovalRequest)
	switch {
	case v.Choice == orchestrator.Deny:
		d.State, d.Reason = orchestrator.ApprovalDenied, cli.Shorten(strings.TrimSpace(v.Reason), reasonBytes)
	case v.Choice == orchestrator.Answer && answers(approval.Questions, v.Answers):
		d.State = orchestrator.ApprovalAnswered
		if !d.Secret {
			d.Answers = v.Answers
		}
	case v.Choice == orchestrator.AllowOnce && approval.Request != nil && approval.Request.Allowable():
		d.State = orchestrator.ApprovalAllowed
	case v.Choice == orchestrator.AllowEdits && approval.Edits && approval.Request.Allowable():
		d.State, d.Ruled = orchestrator.ApprovalAllowed, orchestrator.RuledByMode
	// Create a rule only if its text is still the text that the user saw. The text changes if a symbolic link in the
	// request gets a new target.
	case v.Choice == orchestrator.AllowSession && session.Kind != "" && session.Text == approval.SessionRule:
		d.State, d.Rule = orchestrator.ApprovalAllowed, &session
	case v.Choice == orchestrator.AllowPattern && lasting.Kind != "" && lasting.Text == approval.Rule:
		d.State, d.Rule = orchestrator.ApprovalAllowed, &lasting
	default:
		return orchestrator.ApprovalDecision{}, orchestrator.ErrBadChoice
	}
	if d.Rule != nil {
		d.Rule.ID, d.Rule.By, d.Rule.Created = orchestrator.RuleID(s.opts.NewID()), by.Person, d.Decided
		d.Ruled = d.Rule.Text
	}
	return d, nil
}

// answers reports whether there is a valid answer to every question.
func answers(questions []cli.Question, given [][]string) bool {
	if len(questions) == 0 || len(given) != len(questions) {
		return false
	}
	for i, q := range questions {
		if len(given[i]) == 0 || len(given[i]) > 1 && !q.Multi {
			return false
		}
		for _, text := range given[i] {
			offered := slices.ContainsFunc(q.Options, func(o cli.Option) bool { return o.Label == text })
			if !offered && (strings.TrimSpace(text) == "" || !q.Free && len(q.Options) > 0) {
				return false
			}
		}
	}
	return true
}

// decided passes a stored decision to the agent and shows it to users. If the agent has not repeated its request since
// a restart of ductor, it gets the decision when it repeats the request.
func (s *Service) decided(ctx context.Context, approval orchestrator.Approval, d orchestrator.ApprovalDecision,
	v orchestrator.Verdict) (orchestrator.Approval, error) {
	r := s.of(approval.Turn)
	if r == nil {
		s.show(approval, false)
		return approval, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	told := approval
	if approval.State == orchestrator.ApprovalAnswered {
		// The user may have given a secret answer, which the stored approval does not contain.
		told.Answers = v.Answers
		r.turn.Learn(approval.Questions, v.Answers)
	}
	if mode := ModeAfter(approval, v.Choice, r.turn.Mode); mode != "" { // change the mode before the agent continues
		r.turn.Mode = mode
	}
	gone, err := r.deliver(told)
	if gone {
		withdrawn, err := s.opts.Store.WithdrawApproval(ctx, approval.ID, s.opts.Now())
		if err != nil {
			return approval, fmt.Errorf("withdraw approval: %w", err)
		}
		r.show(withdrawn)
		return withdrawn, orchestrator.ErrApprovalWithdrawn
	}
	r.show(approval)
	switch {
	case d.Rule != nil:
		r.sweep(d.Rule.Text, func(a orchestrator.ApprovalRequest) bool { return covers(*d.Rule, a) })
	case v.Choice == orchestrator.AllowEdits:
		r.sweep(orchestrator.RuledByMode, editsBelow)
	}
	if err != nil {
		r.log.Error("deliver a decision to the agent", "approval", approval.AgentIDs, "err", err)
		return approval, fmt.Errorf("%w: %w", orchestrator.ErrNotTold, err)
	}
	return approval, nil
}

// ModeAfter returns the permission mode that a user's choice sets for the conversation and its turn, or "" if the
// choice does not change the current mode. For example, allowing a plan ends the plan mode.
func ModeAfter(a orchestrator.Approval, choice orchestrator.Choice, current cli.PermissionMode) cli.PermissionMode {
	switch {
	case a.State != orchestrator.ApprovalAllowed || a.Request == nil:
	case choice == orchestrator.AllowEdits && (current == cli.Plan || current == cli.Ask || current == ""):
		return cli.AcceptEdits
	case choice == orchestrator.AllowOnce && a.Request.Tool == cli.PlanTool && current == cli.Plan:
		return cli.Ask
	}
	return ""
}

// sweep allows the open approvals that a new rule or a new permission mode covers. The caller holds mu.
func (r *Requests) sweep(ruled string, covered func(orchestrator.ApprovalRequest) bool) {
	for _, approval := range r.open() {
		if asked := approval.ApprovalRequest; !covered(asked) || !canAutoApprove(asked) || r.s.touchesOwn(asked) {
			continue
		}
		approval, won, err := r.close(approval.ID, orchestrator.Decision{State: orchestrator.ApprovalAllowed,
			Ruled: ruled})
		if err == nil && won {
			_, err = r.deliver(approval)
			r.show(approval)
		}
		if err != nil {
			r.log.Error("decide an approval by rule", "err", err)
		}
	}
}

// redeliver passes a stored decision to the agent again, because the decision may not have arrived. It denies an
// approval that is open and expired. redeliver returns the new state of the approval.
func (s *Service) redeliver(ctx context.Context, approval orchestrator.Approval) orchestrator.Approval {
	r := s.of(approval.Turn)
	switch {
	case r == nil:
	case approval.State == orchestrator.ApprovalOpen:
		r.expire(approval.ID)
		if now, err := s.opts.Store.FindApproval(ctx, approval.ID); err == nil {
			approval = now
		}
	default:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.deliverOrLog(approval)
	}
	return approval
}
