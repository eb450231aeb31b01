package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

const turnColumns = `id, coalesce(session, ''), coalesce(again, ''), chat, topic, person, prompt,
	coalesce(attachments, ''), message, coalesce(updates, ''), state, agent, model, queued, started, ended,
	answer, coalesce(outcome, ''), delivered, aborting, steered_into, wants, sandbox, rights, bypass_until, crashes`

// EnqueueTurn stores t as queued and marks its prompt's updates handled, both or neither. ErrRepeated when t
// repeats a turn that was repeated before, ErrNoSession when it names a session that is not there. It shares a
// transaction if there are such updates. What forget names is forgotten of that session with it.
func (db *DB) EnqueueTurn(ctx context.Context, t orchestrator.Turn, forget ...orchestrator.AgentEnv) error {
	now := millis(db.now())
	write := db.write
	if len(t.Prompt.Updates) > 0 {
		// Until that is committed they are pending, and the turn is queued anew.
		write = db.share
	}
	err := write(ctx, func(tx tx) error {
		if err := tx.notRepeated(t.Again); err != nil {
			return err
		}
		if err := tx.insertTurn(t); err != nil {
			return err
		}
		for _, of := range forget {
			if err := tx.setAgentSession(t.Session, of, ""); err != nil {
				return err
			}
		}
		return tx.handle(t.Prompt.Updates, now)
	})
	return wrap(fmt.Sprintf("enqueue turn %s", t.ID), err)
}

func (t tx) notRepeated(id cli.TurnID) error {
	if id == "" {
		return nil
	}
	repeated, err := t.Exists(`SELECT 1 FROM turns WHERE again = ?`, string(id))
	if err == nil && repeated {
		err = orchestrator.ErrRepeated
	}
	return err
}

// Unrepeated gives ErrRepeated if a turn repeats this one.
func (db *DB) Unrepeated(ctx context.Context, id cli.TurnID) error {
	n, err := sqlite.One(ctx, db.file, sqlite.Value[int],
		`SELECT count(*) FROM turns WHERE again = ?`, string(id))
	if err == nil && n > 0 {
		err = orchestrator.ErrRepeated
	}
	return wrap(fmt.Sprintf("look whether turn %s was repeated", id), err)
}

func (t tx) insertTurn(turn orchestrator.Turn) error {
	p := turn.Prompt
	wants, err := encodeWants(turn.Wants)
	if err != nil {
		return err
	}
	rights, err := encodeRights(p.Rights)
	if err != nil {
		return err
	}
	_, err = t.Exec(`INSERT INTO turns (id, session, again, chat, topic, person, prompt, attachments, message, updates,
			state, agent, model, queued, wants, rights)
		VALUES (?, nullif(?, ''), nullif(?, ''), ?, ?, ?, ?, nullif(?, ''), ?, nullif(?, ''), 'queued', ?, ?, ?, ?, ?)`,
		string(turn.ID), string(turn.Session), string(turn.Again), p.Conversation.Chat, p.Conversation.Topic,
		int64(p.Person), p.Text, list[orchestrator.Attachment]{&p.Attachments}, p.Message, list[int64]{&p.Updates},
		string(turn.Agent), string(turn.Model), millis(turn.Queued), wants, rights)
	return namedSession(err)
}

// UpdatePrompt changes the prompt of a queued turn; false if it is no longer queued.
func (db *DB) UpdatePrompt(ctx context.Context, id cli.TurnID, text string, files []orchestrator.Attachment) (bool, error) {
	return db.moveQueued(ctx, "update prompt of", id, `UPDATE turns SET prompt = ?, attachments = nullif(?, '') WHERE id = ? AND state = 'queued'`,
		text, list[orchestrator.Attachment]{&files}, string(id))
}

// StartTurn moves a queued turn to running, with the session, agent, model, sandbox and start of t, and stores where it begins;
// it does so again for a turn that runs. What worked in the background of the run is over with it. False if the turn is neither
// queued nor running; ErrNoSession when t names a session that is not there. It is lazy: after a power failure no agent runs
// either, but a turn that began in the last second is asked again.
func (db *DB) StartTurn(ctx context.Context, t orchestrator.Turn, s cli.Start) (ok bool, err error) {
	err = db.writeLazily(ctx, func(tx tx) error {
		n, err := tx.Exec(`UPDATE turns SET state = 'running', session = nullif(?, ''), agent = ?, model = ?, sandbox = ?, started = ?,
			bypass_until = ?, run = ?, run_output = ?, run_input = ?, run_note = ? WHERE id = ? AND state IN ('queued', 'running')`,
			string(t.Session), string(t.Agent), string(t.Model), string(t.Sandbox), millis(t.Started), millis(t.Bypass),
			string(s.Run), s.Output, s.Input, s.Note, string(t.ID))
		if ok = n > 0; !ok || err != nil {
			return namedSession(err)
		}
		return tx.endBackground(s.Run)
	})
	return ok && err == nil, wrap(fmt.Sprintf("start turn %s", t.ID), err)
}

// AbortTurns records that a running turn is to end, also one that is just being started, and moves queued ones to
// cancelled, and finishes the updates of the abort, all or none. Turns that are no longer so are passed over; running may
// be empty. The first alone outlives a killed process, not a power failure, after which no agent runs either.
func (db *DB) AbortTurns(ctx context.Context, running cli.TurnID, queued []cli.TurnID, handled orchestrator.Handled) error {
	write := db.writeLazily
	if len(queued)+len(handled.Updates) > 0 {
		write = db.write
	}
	now := millis(db.now())
	finish := db.finishing(handled.Updates, handled.Notices)
	return wrap("abort turns", write(ctx, func(t tx) error {
		if _, err := t.Exec(`UPDATE turns SET aborting = 1 WHERE id = ? AND state IN ('queued', 'running')`, string(running)); err != nil {
			return err
		}
		for _, id := range queued {
			if _, err := t.Exec(cancelQueued, now, string(id)); err != nil {
				return err
			}
		}
		return finish(t)
	}))
}

const cancelQueued = `UPDATE turns SET state = 'cancelled', ended = ?, delivered = 1 WHERE id = ? AND state = 'queued'`

// CancelTurn moves a queued turn to cancelled, or one that was steered and is not delivered; false if it is neither.
// There is no outcome to deliver, so it is not among OpenTurns afterwards.
func (db *DB) CancelTurn(ctx context.Context, id cli.TurnID) (bool, error) {
	return db.moveQueued(ctx, "cancel", id, `UPDATE turns SET state = 'cancelled', steered_into = '', agent = '', model = '',
		sandbox = '', started = 0, ended = ?, delivered = 1 WHERE id = ? AND (state = 'queued' OR `+steeredInVain+`)`,
		millis(db.now()), string(id))
}

func (db *DB) moveQueued(ctx context.Context, verb string, id cli.TurnID, query string, args ...any) (bool, error) {
	var n int64
	err := db.write(ctx, func(t tx) (err error) {
		n, err = t.Exec(query, args...)
		return namedSession(err)
	})
	return n > 0, wrap(fmt.Sprintf("%s turn %s", verb, id), err)
}

// steeredInVain is the condition of a turn that was handed to a running one, and of which ductor does not know yet
// whether it arrived.
const steeredInVain = `(state = 'cancelled' AND steered_into <> '' AND delivered = 0)`

// FinishTurn records the outcome of a running turn, or of one that was steered and is not delivered, and adds
// its cost, tokens and message to its session. It shares a transaction, which comes to the disk.
// ErrNoTurn for an id that is not there; an error, and nothing stored, for a turn that does not run.
func (db *DB) FinishTurn(ctx context.Context, id cli.TurnID, ended time.Time, o orchestrator.Outcome) error {
	op := fmt.Sprintf("finish turn %s", id)
	switch o.State {
	case orchestrator.TurnDone, orchestrator.TurnFailed, orchestrator.TurnAborted, orchestrator.TurnInterrupted:
	default:
		return wrap(op, fmt.Errorf("%q is no state a running turn can end in", o.State))
	}
	outcome, err := encodeOutcome(o)
	if err != nil {
		return wrap(op, err)
	}
	return wrap(op, db.file.WriteSoonFlushed(ctx, func(st *sqlite.Tx) error {
		t := tx{st}
		var session string
		err := t.Row(`UPDATE turns SET state = ?, ended = ?, answer = ?, outcome = ?, crashes = 0
			WHERE id = ? AND (state = 'running' OR `+steeredInVain+`) RETURNING coalesce(session, '')`,
			[]any{string(o.State), millis(ended), o.Text, outcome, string(id)}, &session)
		if errors.Is(err, sql.ErrNoRows) {
			return t.whyNot(id, "running")
		}
		if err == nil {
			err = t.countTurn(id, ended, o)
		}
		if err != nil || session == "" {
			return err
		}
		_, err = t.ExecRow(session, `UPDATE sessions SET used = max(used, ?), messages = messages + 1, cost_usd = cost_usd + ?,
			tokens = tokens + ? WHERE id = ?`, millis(ended), o.CostUSD, o.Usage.Total(), session)
		return err
	}))
}

// whyNot says why a turn that should be in a state was not found in it.
func (t tx) whyNot(id cli.TurnID, wanted string) error {
	var state string
	err := t.Row(`SELECT state FROM turns WHERE id = ?`, []any{string(id)}, &state)
	if errors.Is(err, sql.ErrNoRows) {
		return orchestrator.ErrNoTurn
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("it is %s, not %s", state, wanted)
}

// Turn returns ErrNoTurn for an id that is not there.
func (db *DB) Turn(ctx context.Context, id cli.TurnID) (orchestrator.Turn, error) {
	t, err := sqlite.One(ctx, db.file, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE id = ?`, string(id))
	t, err = known(t, err, orchestrator.ErrNoTurn)
	return t, wrap(fmt.Sprintf("load turn %s", id), err)
}

// OpenTurns lists turns that are queued, running, or ended but not delivered, in the order they were queued.
func (db *DB) OpenTurns(ctx context.Context) ([]orchestrator.Turn, error) {
	all, err := sqlite.Many(ctx, db.file, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE delivered = 0 ORDER BY seq`)
	return all, wrap("list open turns", err)
}

// TurnsShownWaiting lists turns that no longer wait, and of which a chat still shows that they do.
func (db *DB) TurnsShownWaiting(ctx context.Context) ([]orchestrator.Turn, error) {
	all, err := sqlite.Many(ctx, db.file, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE state <> 'queued' AND id IN (
		SELECT substr(key, length('queued/') + 1) FROM messages WHERE key >= 'queued/' AND key < 'queued0' AND state = 'sent' AND mark <> ?)
		ORDER BY seq`, orchestrator.EndShown)
	return all, wrap("list turns that are shown to wait", err)
}

// History lists the last ended turns of a session, at most limit, oldest first, those that it was forked with included.
// Cancelled turns never ran and are left out; steered ones are there, without an answer.
func (db *DB) History(ctx context.Context, id orchestrator.SessionID, limit int) ([]orchestrator.Turn, error) {
	var all []orchestrator.Turn // newest first
	line := ancestry{session: string(id), last: math.MaxInt64}
	for {
		turns, err := sqlite.Many(ctx, db.file, scanTurn, `SELECT `+turnColumns+` FROM turns
			WHERE session = ? AND seq <= ? AND (state IN ('done', 'failed', 'aborted', 'interrupted') OR state = 'cancelled' AND steered_into <> '')
			ORDER BY seq DESC LIMIT ?`, line.session, line.last, atMost(limit)-len(all))
		if all = append(all, turns...); err != nil || len(all) >= limit {
			slices.Reverse(all)
			return all, wrap(fmt.Sprintf("load history of session %s", id), err)
		}
		line, err = sqlite.One(ctx, db.file, scan(ancestryFields), `SELECT parent, parent_turn FROM sessions WHERE id = ?`, line.session)
		if errors.Is(err, sql.ErrNoRows) || err == nil && line.session == "" {
			slices.Reverse(all)
			return all, nil
		}
		if err != nil {
			return nil, wrap(fmt.Sprintf("find the session that %s was forked from", id), err)
		}
	}
}

// ancestry is a session and the last turn that a fork has of it.
type ancestry struct {
	session string
	last    int64
}

func ancestryFields(a *ancestry) []any { return []any{&a.session, &a.last} }

// outcomeRow is an outcome with what is stored in another form.
type outcomeRow struct {
	orchestrator.Outcome
	orchestrator.Recovery
	Usage  usageRow `json:"usage"`
	At     int64    `json:"at,omitempty"`
	Former string   `json:"offer,omitempty"` // of outcomes that were stored before they had several offers
}

type usageRow struct {
	Input      int64 `json:"input,omitempty"`
	Output     int64 `json:"output,omitempty"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	Reasoning  int64 `json:"reasoning,omitempty"`
}

func scanTurn(row sqlite.Row) (t orchestrator.Turn, err error) {
	var answer, outcome, wants, rights string
	p := &t.Prompt
	err = row.Scan(&t.ID, &t.Session, &t.Again, &p.Conversation.Chat, &p.Conversation.Topic, &p.Person, &p.Text,
		list[orchestrator.Attachment]{&p.Attachments}, &p.Message, list[int64]{&p.Updates}, &t.State, &t.Agent, &t.Model,
		moment{&t.Queued}, moment{&t.Started}, moment{&t.Ended}, &answer, &outcome, &t.Delivered, &t.Aborting, &t.Into, &wants,
		&t.Sandbox, &rights, moment{&t.Bypass}, &t.Crashes)
	if err != nil {
		return orchestrator.Turn{}, err
	}
	if t.State == orchestrator.TurnCancelled && t.Into != "" {
		t.State = orchestrator.TurnSteered
	}
	if t.Wants, err = decodeWants(wants); err != nil {
		return orchestrator.Turn{}, err
	}
	if p.Rights, err = decodeRights(rights); err != nil {
		return orchestrator.Turn{}, err
	}
	if outcome != "" {
		t.Outcome, err = decodeOutcome(outcome)
		t.Outcome.State, t.Outcome.Text = t.State, answer
	}
	return t, err
}

func encodeOutcome(o orchestrator.Outcome) (string, error) {
	return encode(outcomeRow{Outcome: o, Recovery: o.Recovery, Usage: usageRow(o.Usage), At: millis(o.Recovery.At)})
}

func decodeOutcome(text string) (orchestrator.Outcome, error) {
	var row outcomeRow
	if err := decode(text, &row); err != nil {
		return orchestrator.Outcome{}, err
	}
	o := row.Outcome
	o.Recovery, o.Usage = row.Recovery, cli.Usage(row.Usage)
	o.Recovery.At, o.Recovery.Offer = instant(row.At), append(formerOffer(row.Former), o.Recovery.Offer...)
	return o, nil
}

// formerOffer is what an outcome offered that named its offer in one word.
func formerOffer(word string) []orchestrator.Action {
	switch word {
	case "retry", "wait", "other-agent":
		return []orchestrator.Action{orchestrator.ActionAgain}
	case "fresh":
		return []orchestrator.Action{orchestrator.ActionFresh, orchestrator.ActionAgain}
	}
	return nil
}

type rightsRow struct {
	Of    orchestrator.RightsOf `json:"of"`
	Mode  cli.PermissionMode    `json:"mode,omitempty"`
	Rules []string              `json:"rules,omitempty"`
	Tools []string              `json:"tools,omitempty"`
	No    []string              `json:"denied_tools,omitempty"`
}

// encodeRights gives JSON, and nothing for the rights of the chat.
func encodeRights(r orchestrator.Rights) (string, error) {
	if r.Of == orchestrator.RightsOfChat {
		return "", nil
	}
	return encode(rightsRow{Of: r.Of, Mode: r.Mode, Rules: r.Rules, Tools: r.Tools.Only, No: r.Tools.Denied})
}

func decodeRights(text string) (orchestrator.Rights, error) {
	var row rightsRow
	err := decode(text, &row)
	return orchestrator.Rights{Of: row.Of, Mode: row.Mode, Rules: row.Rules, Tools: cli.ToolList{Only: row.Tools, Denied: row.No}}, err
}

// wantsRow is what a turn wants, with the looks of its card.
type wantsRow struct {
	orchestrator.Wants
	orchestrator.CardStyle
}

// encodeWants gives JSON, and nothing for a turn that wants nothing.
func encodeWants(w orchestrator.Wants) (string, error) {
	if w == (orchestrator.Wants{}) {
		return "", nil
	}
	return encode(wantsRow{w, w.Card})
}

func decodeWants(text string) (orchestrator.Wants, error) {
	var row wantsRow
	err := decode(text, &row)
	row.Wants.Card = row.CardStyle
	return row.Wants, err
}
