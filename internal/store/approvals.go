package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// Approvals are in the table "asks". The agents' requests are in the table "ask_requests".
//
// The last column of approvalColumns is a JSON array of the request IDs. One statement can then read an approval with
// all its requests from the same snapshot.
const (
	approvalInserted = `id, nonce, turn, session, chat, topic, agent, dir, content, session_rule, rule, approvers,
	asked, expires, state, ruled, reason, decided, sandbox`
	approvalColumns = approvalInserted + `, person, answers,
	(SELECT json_group_array(request) FROM (SELECT request FROM ask_requests n WHERE n.ask = asks.id AND n.gone = 0
	ORDER BY n.seq))`
)

// OpenApproval implements orchestrator.ApprovalStore. It waits for the disk only if the approval is already decided.
func (db *DB) OpenApproval(ctx context.Context, a orchestrator.Approval, digest string) (orchestrator.Approval, error) {
	now, write := a, db.write
	// Do not wait for the disk, because the user should see the open approval soon.
	if a.State == orchestrator.ApprovalOpen {
		write = db.writeLazily
	}
	err := write(ctx, func(t tx) error {
		if len(a.AgentIDs) != 1 {
			return fmt.Errorf("it has %d requests, not 1", len(a.AgentIDs))
		}
		var id string
		err := t.Row(`SELECT ask FROM ask_requests WHERE turn = ? AND request = ?`,
			[]any{string(a.Turn), string(a.AgentIDs[0])}, &id)
		switch {
		case err == nil:
			err = t.reopenRequest(a, id, digest)
		case errors.Is(err, sql.ErrNoRows):
			id, err = t.insertRequest(a, digest)
		}
		if err != nil {
			return err
		}
		now, err = t.approval(id)
		return err
	})
	return now, wrap(fmt.Sprintf("open approval %s", a.ID), err)
}

// reopenRequest marks a request as waiting again after the agent has repeated it. The stored content may come from an
// older version of ductor with fewer fields. So reopenRequest replaces the content, too.
func (t tx) reopenRequest(a orchestrator.Approval, id, digest string) error {
	content, err := encodeRequest(a)
	if err == nil {
		_, err = t.Exec(`UPDATE asks SET content = ? WHERE id = ? AND state = 'open' AND digest = ?`,
			content, id, digest)
	}
	if err == nil {
		_, err = t.Exec(`UPDATE ask_requests SET gone = 0 WHERE turn = ? AND request = ?
			AND (SELECT state FROM asks WHERE id = ask) = 'open'`, string(a.Turn), string(a.AgentIDs[0]))
	}
	return err
}

// insertRequest stores a new request and returns the ID of its approval. If an approval with the same digest is open,
// insertRequest adds the request to that approval. Otherwise it creates a new approval.
func (t tx) insertRequest(a orchestrator.Approval, digest string) (id string, err error) {
	err = sql.ErrNoRows
	if a.State == orchestrator.ApprovalOpen {
		err = t.Row(`SELECT id FROM asks WHERE turn = ? AND digest = ? AND state = 'open'`,
			[]any{string(a.Turn), digest}, &id)
	}
	if errors.Is(err, sql.ErrNoRows) {
		id = string(a.ID)
		err = t.insertApproval(a, digest)
	}
	if err != nil {
		return "", err
	}
	call := ""
	if a.Request != nil {
		call = string(a.Request.Started)
	}
	if _, err := t.Exec(`INSERT INTO ask_requests (turn, request, ask, call) VALUES (?, ?, ?, ?)`,
		string(a.Turn), string(a.AgentIDs[0]), id, call); err != nil {
		return "", err
	}
	if a.State != orchestrator.ApprovalOpen {
		return id, t.audit(auditEntry(a, automaticKind(a), a.Decided))
	}
	return id, nil
}

func (t tx) insertApproval(a orchestrator.Approval, digest string) error {
	content, err := encodeRequest(a)
	if err != nil {
		return err
	}
	_, err = t.insert("asks", approvalInserted+", digest", "", append(approvalFields(&a, &content), digest)...)
	return err
}

func (t tx) approval(id string) (orchestrator.Approval, error) {
	a, err := sqlite.OneIn(t.Tx, scanApproval, `SELECT `+approvalColumns+` FROM asks WHERE id = ?`, id)
	return mapNoRows(a, err, orchestrator.ErrNoApproval)
}

func (db *DB) FindApproval(ctx context.Context, id orchestrator.ApprovalID) (orchestrator.Approval, error) {
	return db.findApproval(ctx, "load approval", `WHERE id = ?`, string(id))
}

func (db *DB) FindSameApproval(
	ctx context.Context, session orchestrator.SessionID, digest string,
) (orchestrator.Approval, error) {
	return db.findApproval(ctx, "find an earlier approval",
		`WHERE session = ? AND digest = ? ORDER BY seq DESC LIMIT 1`, string(session), digest)
}

func (db *DB) LastProjectApproval(
	ctx context.Context, in orchestrator.ConversationID, agent cli.Agent, dir string,
) (orchestrator.Approval, error) {
	return db.findApproval(ctx, "find the last approval of project settings",
		`WHERE chat = ? AND topic = ? AND agent = ? AND dir = ? AND state = 'allowed' AND
		json_extract(content, '$.approval.tool') = ? ORDER BY seq DESC LIMIT 1`,
		in.Chat, in.Topic, string(agent), dir, cli.ProjectTool)
}

func (db *DB) findApproval(ctx context.Context, op, where string, args ...any) (orchestrator.Approval, error) {
	a, err := sqlite.One(ctx, db.file, scanApproval, `SELECT `+approvalColumns+` FROM asks `+where, args...)
	a, err = mapNoRows(a, err, orchestrator.ErrNoApproval)
	return a, wrap(op, err)
}

func (db *DB) OpenApprovals(ctx context.Context) ([]orchestrator.Approval, error) {
	all, err := sqlite.Many(ctx, db.file, scanApproval,
		`SELECT `+approvalColumns+` FROM asks WHERE state = 'open' ORDER BY seq`)
	return all, wrap("list open approvals", err)
}

func (db *DB) ApprovalsShownOpen(ctx context.Context) ([]orchestrator.Approval, error) {
	all, err := sqlite.Many(ctx, db.file, scanApproval,
		`SELECT `+approvalColumns+` FROM asks WHERE state <> 'open' AND id IN (
		SELECT substr(named, 1, instr(named || '/', '/') - 1) FROM (SELECT substr(key, length('approval/') + 1) AS named
		FROM messages
			WHERE key >= 'approval/' AND key < 'approval0' AND state = 'sent' AND mark <> ?))
			ORDER BY seq`, orchestrator.EndShown)
	return all, wrap("list approvals that are shown as open", err)
}

// DecideApproval waits for the disk. If it did not wait, a power failure could undo the decision, and a user could
// decide again.
func (db *DB) DecideApproval(
	ctx context.Context, d orchestrator.ApprovalDecision,
) (now orchestrator.Approval, won bool, err error) {
	write := db.write
	if d.Secret {
		write = db.writeSecret
	}
	err = write(ctx, func(t tx) (err error) {
		if won, err = t.decide(d); err != nil {
			return err
		}
		if now, err = t.approval(string(d.Approval)); err != nil || !won {
			return err
		}
		return t.recordDecision(now, d, millis(db.now()))
	})
	if err != nil {
		won = false
	}
	return now, won, wrap("decide approval", err)
}

// decide changes the state of an open approval. It returns false if the approval is not open, or if its turn has ended.
func (t tx) decide(d orchestrator.ApprovalDecision) (bool, error) {
	answers, err := encodeList(d.Answers)
	if err != nil {
		return false, err
	}
	n, err := t.Exec(`UPDATE asks SET state = ?1, person = ?2, ruled = ?3, reason = ?4, answers = ?5, decided = ?6
		WHERE id = ?7 AND state = 'open' AND (?1 IN ('denied', 'expired') OR turn GLOB 'terminal-*' OR
			turn GLOB 'outside:*' OR
			EXISTS (SELECT 1 FROM turns WHERE turns.id = asks.turn AND turns.state IN ('queued', 'running')
			AND aborting = 0))`,
		string(d.State), int64(d.By), d.Ruled, d.Reason, answers, millis(d.Decided), string(d.Approval))
	return n > 0, err
}

// recordDecision stores the new rule and the audit entries of a decision. It also marks the Telegram updates that
// contain the decision as handled.
func (t tx) recordDecision(a orchestrator.Approval, d orchestrator.ApprovalDecision, now int64) error {
	if d.Rule != nil {
		if err := t.insertRule(*d.Rule); err != nil {
			return err
		}
		made := orchestrator.AuditEntry{At: d.Decided, What: orchestrator.AuditRule, Conversation: a.Conversation,
			Turn:  a.Turn,
			Agent: d.Rule.Agent, Tool: d.Rule.Tool, Choice: d.Choice, By: d.By, Rule: d.Rule.Text}
		if err := t.audit(made); err != nil {
			return err
		}
	}
	what := map[orchestrator.ApprovalState]orchestrator.AuditKind{
		orchestrator.ApprovalAllowed: orchestrator.AuditAllowed, orchestrator.ApprovalDenied: orchestrator.AuditDenied,
		orchestrator.ApprovalAnswered: orchestrator.AuditAnswered,
		orchestrator.ApprovalExpired:  orchestrator.AuditExpired,
	}[d.State]
	if d.By == 0 && d.State == orchestrator.ApprovalAllowed {
		what = automaticKind(a)
	}
	e := auditEntry(a, what, d.Decided)
	e.Choice = d.Choice
	if err := t.audit(e); err != nil {
		return err
	}
	return t.markHandled(d.Updates, now)
}

func (db *DB) WithdrawRequest(
	ctx context.Context, turn cli.TurnID, request cli.ApprovalID, what orchestrator.AuditKind, at time.Time,
) (now orchestrator.Approval, changed bool, err error) {
	err = db.write(ctx, func(t tx) error {
		var id string
		err := t.Row(`UPDATE ask_requests SET gone = 1 WHERE turn = ? AND request = ? AND gone = 0
			AND (SELECT state FROM asks WHERE id = ask) IN ('open', CASE ? WHEN 'changed' THEN 'allowed' END)
			RETURNING ask`, []any{string(turn), string(request), string(what)}, &id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		changed = true
		waits, err := t.Exists(`SELECT 1 FROM ask_requests WHERE ask = ? AND gone = 0`, id)
		if err == nil && !waits {
			_, err = t.withdraw(what, at, `id = ?`, id)
		}
		if err != nil {
			return err
		}
		now, err = t.approval(id)
		return err
	})
	return now, changed && err == nil, wrap("withdraw approval", err)
}

func (db *DB) WithdrawApproval(
	ctx context.Context, id orchestrator.ApprovalID, at time.Time,
) (now orchestrator.Approval, err error) {
	err = db.write(ctx, func(t tx) error {
		if _, err := t.withdraw(orchestrator.AuditWithdrawn, at, `id = ?`, string(id)); err != nil {
			return err
		}
		now, err = t.approval(string(id))
		return err
	})
	return now, wrap("withdraw approval", err)
}

func (db *DB) WithdrawTurn(
	ctx context.Context, turn cli.TurnID, at time.Time,
) (all []orchestrator.Approval, err error) {
	// This method runs at the end of every turn. Most turns have no approvals, so check that before writing anything.
	open, err := sqlite.One(ctx, db.file, sqlite.Value[int],
		`SELECT EXISTS (SELECT 1 FROM asks WHERE turn = ? AND state = 'open')`, string(turn))
	if err == nil && open > 0 {
		err = db.write(ctx, func(t tx) (err error) {
			all, err = t.withdraw(orchestrator.AuditWithdrawn, at, `turn = ? AND state = 'open'`, string(turn))
			return err
		})
	}
	return all, wrap(fmt.Sprintf("withdraw approvals of turn %s", turn), err)
}

// withdraw changes the state of approvals to withdrawn, and writes audit entries of the given kind. The parameter where
// is an SQL condition that selects the approvals. withdraw returns the changed approvals, the oldest first. It skips
// approvals that are already withdrawn.
func (t tx) withdraw(
	kind orchestrator.AuditKind, at time.Time, where string, args ...any,
) ([]orchestrator.Approval, error) {
	all, err := sqlite.ManyIn(t.Tx, scanApproval, `UPDATE asks SET state = 'withdrawn', decided = ?
		WHERE state <> 'withdrawn' AND `+where+` RETURNING `+approvalColumns, append([]any{millis(at)}, args...)...)
	slices.SortStableFunc(all, func(a, b orchestrator.Approval) int { return a.Asked.Compare(b.Asked) })
	for _, a := range all {
		if err == nil {
			err = t.audit(auditEntry(a, kind, at))
		}
	}
	return all, err
}

// requestRow is the stored form of an agent's request: a request for permission or questions.
type requestRow struct {
	Approval  *approvalRow   `json:"approval,omitempty"`
	Questions []cli.Question `json:"questions,omitempty"`
}

type approvalRow struct {
	cli.ApprovalAsked
	Links []orchestrator.Link `json:"links,omitempty"`
	Edits bool                `json:"edits,omitempty"`
}

func encodeRequest(a orchestrator.Approval) (string, error) {
	row := requestRow{Questions: a.Questions}
	if a.Request != nil {
		p := *a.Request
		if !json.Valid(p.Input) {
			p.Input = nil
		}
		p.Fields = append([]cli.Field{}, p.Fields...) // not nil, because nil marks a row of an old version
		row.Approval = &approvalRow{p, a.Links, a.Edits}
	}
	return encode(row)
}

func decodeRequest(text string, a *orchestrator.Approval) error {
	var row requestRow
	if err := decode(text, &row); err != nil {
		return err
	}
	if row.Approval != nil {
		a.Edits, a.Links, a.Request = row.Approval.Edits, row.Approval.Links, &row.Approval.ApprovalAsked
		if a.Request.Fields == nil { // an old version of ductor stored no fields, so show the whole input
			a.Request.Fields = cli.Reading{}.Fields(a.Request.Input)
		}
	}
	a.Questions = row.Questions
	return nil
}

func approvalFields(a *orchestrator.Approval, content *string) []any {
	return []any{&a.ID, &a.Nonce, &a.Turn, &a.Session, &a.Conversation.Chat, &a.Conversation.Topic, &a.Agent, &a.Dir,
		content, &a.SessionRule, &a.Rule, listColumn[orchestrator.PersonID]{&a.Approvers}, timeColumn{&a.Asked},
		timeColumn{&a.Expires},
		&a.State, &a.Ruled, &a.Reason, timeColumn{&a.Decided}, &a.Sandbox}
}

func scanApproval(row sqlite.Row) (a orchestrator.Approval, err error) {
	var content string
	more := []any{&a.By, listColumn[[]string]{&a.Answers}, listColumn[cli.ApprovalID]{&a.AgentIDs}}
	if err = row.Scan(append(approvalFields(&a, &content), more...)...); err != nil {
		return orchestrator.Approval{}, err
	}
	return a, decodeRequest(content, &a)
}

const ruleColumns = `id, chat, topic, session, agent, tool, dir, kind, value, text, person, created, sandbox`

func ruleFields(r *orchestrator.Rule) []any {
	return []any{&r.ID, &r.Conversation.Chat, &r.Conversation.Topic, &r.Session, &r.Agent, &r.Tool, &r.Dir,
		&r.Kind, &r.Value, &r.Text, &r.By, timeColumn{&r.Created}, &r.Sandbox}
}

func (t tx) insertRule(r orchestrator.Rule) error {
	_, err := t.insert("rules", ruleColumns, "", ruleFields(&r)...)
	return err
}

func (db *DB) RulesOf(ctx context.Context, in orchestrator.ConversationID) ([]orchestrator.Rule, error) {
	all, err := sqlite.Many(ctx, db.file, scan(ruleFields),
		`SELECT `+ruleColumns+` FROM rules WHERE chat = ? AND topic = ? ORDER BY seq`,
		in.Chat, in.Topic)
	return all, wrap(fmt.Sprintf("list rules of %s", in.Key()), err)
}

func (db *DB) RevokeRule(ctx context.Context, id orchestrator.RuleID, in orchestrator.ConversationID,
	by orchestrator.PersonID, at time.Time,
) (revoked bool, err error) {
	err = db.write(ctx, func(t tx) error {
		var agent, tool, text string
		err := t.Row(`DELETE FROM rules WHERE id = ? AND chat = ? AND topic = ? RETURNING agent, tool, text`,
			[]any{string(id), in.Chat, in.Topic}, &agent, &tool, &text)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		revoked = true
		return t.audit(orchestrator.AuditEntry{At: at, What: orchestrator.AuditRevoked, Conversation: in,
			Agent: cli.Agent(agent), Tool: tool, By: by, Rule: text})
	})
	return revoked && err == nil, wrap("revoke rule", err)
}
