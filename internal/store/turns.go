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
	answer, coalesce(outcome, ''), delivered, aborting, steered_into, wants, sandbox, rights, bypass_until, crashes,
	kind, role, asks, number, upto, account`

// EnqueueTurn uses a shared transaction if the prompt came in Telegram updates. It returns ErrNoSession if t refers to
// an unknown session.
func (db *DB) EnqueueTurn(ctx context.Context, t orchestrator.Turn, forget ...orchestrator.AgentEnv) error {
	now := millis(db.now())
	write := db.write
	if len(t.Prompt.Updates) > 0 {
		// If the process dies before the commit, the updates are not marked as handled, and ductor handles them again.
		write = db.writeShared
	}
	err := write(ctx, func(tx tx) error {
		if err := tx.claimRepetition(t); err != nil {
			return err
		}
		if err := tx.insertTurn(t); err != nil {
			return err
		}
		for _, of := range forget {
			if err := tx.setAgentSession(t.Session, of, orchestrator.AgentSession{}); err != nil {
				return err
			}
		}
		return tx.markHandled(t.Prompt.Updates, now)
	})
	return wrap(fmt.Sprintf("enqueue turn %s", t.ID), err)
}

// claimRepetition ensures that a turn is repeated only once. The given turn repeats the turn turn.Again, unless this ID
// is empty. claimRepetition returns ErrRepeated if another turn already repeats turn.Again. A LaterJob may be planned
// to repeat turn.Again, too. If the given turn does not belong to this job, claimRepetition deletes the job. If the job
// has already started a run, claimRepetition returns ErrRepeated instead.
func (t tx) claimRepetition(turn orchestrator.Turn) error {
	if turn.Again == "" {
		return nil
	}
	later := orchestrator.LaterJob(turn.Again)
	repeated, err := t.Exists(`SELECT 1 FROM turns WHERE again = ?`, string(turn.Again))
	if err == nil && !repeated && turn.Wants.Job != later {
		repeated, err = t.Exists(`SELECT 1 FROM job_runs WHERE job = ? AND state <> 'skipped'`, string(later))
	}
	switch {
	case err != nil:
		return err
	case repeated:
		return orchestrator.ErrRepeated
	case turn.Wants.Job == later:
		return nil
	}
	_, err = t.Exec(`DELETE FROM jobs WHERE id = ?`, string(later))
	return err
}

func (db *DB) Unrepeated(ctx context.Context, id cli.TurnID) error {
	n, err := sqlite.One(ctx, db.file, sqlite.Value[int],
		`SELECT count(*) FROM turns WHERE again = ?`, string(id))
	if err == nil && n > 0 {
		err = orchestrator.ErrRepeated
	}
	return wrap(fmt.Sprintf("check whether turn %s was repeated", id), err)
}

func (t tx) insertTurn(turn orchestrator.Turn) error {
	p := turn.Prompt
	wants, err := encodeWants(turn)
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
		int64(p.Person), p.Text, listColumn[orchestrator.Attachment]{&p.Attachments}, p.Message,
		listColumn[int64]{&p.Updates},
		string(turn.Agent), string(turn.Model), millis(turn.Queued), wants, rights)
	return mapForeignKey(err)
}

func (db *DB) UpdatePrompt(ctx context.Context, t orchestrator.Turn) (bool, error) {
	wants, err := encodeWants(t)
	if err != nil {
		return false, err
	}
	return db.changeQueued(ctx, "update prompt of", t.ID,
		`UPDATE turns SET prompt = ?, attachments = nullif(?, ''), wants = ? WHERE id = ? AND state = 'queued'`,
		t.Prompt.Text, listColumn[orchestrator.Attachment]{&t.Prompt.Attachments}, wants, string(t.ID))
}

// StartTurn does not wait for the disk. A power failure can undo the change. But a power failure also ends the agent,
// so ductor starts the turn again. StartTurn also ends the background work of the run. It returns ErrNoSession if t
// refers to an unknown session.
func (db *DB) StartTurn(ctx context.Context, t orchestrator.Turn, s cli.Start) (ok bool, err error) {
	err = db.writeLazily(ctx, func(tx tx) error {
		n, err := tx.Exec(`UPDATE turns SET state = 'running', session = nullif(?, ''), agent = ?, model = ?,
			sandbox = ?, started = ?, role = ?, upto = ?, account = ?,
			bypass_until = ?, run = ?, run_output = ?, run_input = ?, run_note = ?
			WHERE id = ? AND state IN ('queued', 'running')`,
			string(t.Session), string(t.Agent), string(t.Model), string(t.Sandbox), millis(t.Started), t.Entry.Role,
			t.Entry.UpTo, string(t.Entry.Account), millis(t.Bypass),
			string(s.Run), s.Output, s.Input, s.Note, string(t.ID))
		if ok = n > 0; !ok || err != nil {
			return mapForeignKey(err)
		}
		return tx.endBackground(s.Run)
	})
	return ok && err == nil, wrap(fmt.Sprintf("start turn %s", t.ID), err)
}

// AbortTurns implements orchestrator.Store. It does not wait for the disk if it only marks a running turn.
func (db *DB) AbortTurns(
	ctx context.Context, running, queued []cli.TurnID, handled orchestrator.Handled,
) error {
	write := db.writeLazily
	if len(queued)+len(handled.Updates) > 0 {
		write = db.write
	}
	now := millis(db.now())
	finish := db.finishUpdates(handled.Updates, handled.Notices)
	return wrap("abort turns", write(ctx, func(t tx) error {
		for _, id := range running {
			if _, err := t.Exec(`UPDATE turns SET aborting = 1
				WHERE id = ? AND state IN ('queued', 'running')`, string(id)); err != nil {
				return err
			}
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

// CancelTurn cancels a queued turn, or a steered turn whose prompt the agent may not have received. It also marks the
// turn as delivered, so that OpenTurns does not list the turn.
func (db *DB) CancelTurn(ctx context.Context, id cli.TurnID) (bool, error) {
	return db.changeQueued(ctx, "cancel", id,
		`UPDATE turns SET state = 'cancelled', steered_into = '', agent = '', model = '',
		sandbox = '', started = 0, ended = ?, delivered = 1 WHERE id = ? AND (state = 'queued'
		OR `+steeredUndelivered+`)`,
		millis(db.now()), string(id))
}

func (db *DB) changeQueued(ctx context.Context, verb string, id cli.TurnID, query string, args ...any) (bool, error) {
	var n int64
	err := db.write(ctx, func(t tx) (err error) {
		n, err = t.Exec(query, args...)
		return mapForeignKey(err)
	})
	return n > 0, wrap(fmt.Sprintf("%s turn %s", verb, id), err)
}

// steeredUndelivered is an SQL condition for a steered turn: its prompt was added to a running turn, but ductor does
// not know whether the agent received the prompt.
const steeredUndelivered = `(state = 'cancelled' AND steered_into <> '' AND delivered = 0)`

// FinishTurn uses a shared transaction and starts a flush after the commit. It returns ErrNoTurn for an unknown ID. It
// returns another error if the turn is not running.
func (db *DB) FinishTurn(ctx context.Context, id cli.TurnID, ended time.Time, o orchestrator.Outcome) error {
	op := fmt.Sprintf("finish turn %s", id)
	switch o.State {
	case orchestrator.TurnDone, orchestrator.TurnFailed, orchestrator.TurnAborted, orchestrator.TurnInterrupted:
	default:
		return wrap(op, fmt.Errorf("%q is not a state in which a running turn can end", o.State))
	}
	outcome, err := encodeOutcome(o)
	if err != nil {
		return wrap(op, err)
	}
	return wrap(op, db.file.WriteSharedFlushed(ctx, func(st *sqlite.Tx) error {
		t := tx{st}
		var session string
		err := t.Row(`UPDATE turns SET state = ?, ended = ?, answer = ?, outcome = ?, crashes = 0,
			number = `+nextNumber+`
			WHERE id = ? AND (state = 'running' OR `+steeredUndelivered+`) RETURNING coalesce(session, '')`,
			[]any{string(o.State), millis(ended), o.Text, outcome, string(id)}, &session)
		if errors.Is(err, sql.ErrNoRows) {
			return t.stateError(id, "running")
		}
		if err == nil {
			_, err = t.Exec(`UPDATE turns SET number = `+numberOfHost+` WHERE steered_into = ? AND steered_into <> ''`,
				string(id))
		}
		if err == nil {
			err = t.countTurn(id, ended, o)
		}
		if err != nil || session == "" {
			return err
		}
		return t.addToSession(session, ended, o)
	}))
}

// SQL expressions for the number of a turn in the history. nextNumber is the number of a new turn. numberOfHost is the
// number of a steered turn: its prompt was added to another turn, and the two turns have the same number.
const (
	nextNumber   = `(SELECT coalesce(max(number), 0) + 1 FROM turns WHERE number > 0)`
	numberOfHost = `coalesce((SELECT host.number FROM turns host WHERE host.id = turns.steered_into), 0)`
)

func (t tx) addToSession(session string, ended time.Time, o orchestrator.Outcome) error {
	_, err := t.ExecRow(session,
		`UPDATE sessions SET used = max(used, ?), messages = messages + 1, cost_usd = cost_usd + ?,
		tokens = tokens + ? WHERE id = ?`, millis(ended), o.CostUSD, o.Usage.Total(), session)
	return err
}

// AddEntry uses a shared transaction and starts a flush after the commit. It returns ErrNoSession for an unknown
// session.
func (db *DB) AddEntry(ctx context.Context, turn orchestrator.Turn, steps []orchestrator.Step) error {
	op := fmt.Sprintf("store entry %s", turn.ID)
	outcome, err := encodeOutcome(turn.Outcome)
	if err != nil {
		return wrap(op, err)
	}
	return wrap(op, db.file.WriteSharedFlushed(ctx, func(st *sqlite.Tx) error {
		t := tx{st}
		if err := t.insertTurn(turn); err != nil {
			return err
		}
		_, err := t.Exec(`UPDATE turns SET state = ?, sandbox = ?, started = ?, ended = ?, answer = ?, outcome = ?,
			delivered = 1, kind = ?, role = ?, account = ?, asks = ?, number = `+nextNumber+` WHERE id = ?`,
			string(turn.Outcome.State), string(turn.Sandbox), millis(turn.Started), millis(turn.Ended),
			turn.Outcome.Text, outcome, string(turn.Entry.Kind), turn.Entry.Role, string(turn.Entry.Account),
			string(turn.Entry.Asks), string(turn.ID))
		if err != nil {
			return err
		}
		if err := t.saveSteps(turn.ID, turn.Ended, steps); err != nil {
			return err
		}
		return t.addToSession(string(turn.Session), turn.Ended, turn.Outcome)
	}))
}

func (db *DB) LastAside(
	ctx context.Context, in orchestrator.ConversationID, id orchestrator.SessionID, kind orchestrator.EntryKind,
) (orchestrator.Turn, error) {
	of, args := `session = ?`, []any{string(id)}
	if id == "" {
		of, args = `chat = ? AND topic = ?`, []any{in.Chat, in.Topic}
	}
	t, err := sqlite.One(ctx, db.file, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE `+of+`
		AND kind <> '' ORDER BY kind = ? DESC, number DESC LIMIT 1`, append(args, string(kind))...)
	t, err = mapNoRows(t, err, orchestrator.ErrNoConsult)
	return t, wrap("find the last consultation", err)
}

// stateError returns the error for an operation on a turn that is not in the wanted state.
func (t tx) stateError(id cli.TurnID, wanted string) error {
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

func (db *DB) Turn(ctx context.Context, id cli.TurnID) (orchestrator.Turn, error) {
	t, err := sqlite.One(ctx, db.file, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE id = ?`, string(id))
	t, err = mapNoRows(t, err, orchestrator.ErrNoTurn)
	return t, wrap(fmt.Sprintf("load turn %s", id), err)
}

func (db *DB) OpenTurns(ctx context.Context) ([]orchestrator.Turn, error) {
	all, err := sqlite.Many(ctx, db.file, scanTurn,
		`SELECT `+turnColumns+` FROM turns WHERE delivered = 0 ORDER BY seq`)
	return all, wrap("list open turns", err)
}

func (db *DB) TurnsShownWaiting(ctx context.Context) ([]orchestrator.Turn, error) {
	all, err := sqlite.Many(ctx, db.file, scanTurn,
		`SELECT `+turnColumns+` FROM turns WHERE state <> 'queued' AND id IN (
		SELECT substr(key, length('queued/') + 1) FROM messages WHERE key >= 'queued/' AND key < 'queued0'
		AND state = 'sent' AND mark <> ?)
		ORDER BY seq`, orchestrator.EndShown)
	return all, wrap("list turns that are shown as waiting", err)
}

// History omits cancelled turns, because they never ran. It includes steered turns: their prompts were added to a
// running turn, so they have no answer of their own. The history of a fork includes the turns that the fork shares with
// the original session.
func (db *DB) History(ctx context.Context, id orchestrator.SessionID, limit int) ([]orchestrator.Turn, error) {
	return db.EntriesAfter(ctx, id, 0, limit)
}

func (db *DB) EntriesAfter(
	ctx context.Context, id orchestrator.SessionID, after int64, limit int,
) ([]orchestrator.Turn, error) {
	var all []orchestrator.Turn // the newest first
	line := ancestry{session: string(id), last: math.MaxInt64}
	for {
		turns, err := sqlite.Many(ctx, db.file, scanTurn, `SELECT `+turnColumns+` FROM turns
			WHERE session = ? AND number > ? AND number <= ? AND `+isHistory+`
			ORDER BY number DESC, seq DESC LIMIT ?`, line.session, after, line.last, nonNegative(limit)-len(all))
		if all = append(all, turns...); err != nil || len(all) >= limit {
			slices.Reverse(all)
			return all, wrap(fmt.Sprintf("load history of session %s", id), err)
		}
		line, err = sqlite.One(ctx, db.file, scan(ancestryFields),
			`SELECT parent, parent_turn FROM sessions WHERE id = ?`, line.session)
		if errors.Is(err, sql.ErrNoRows) || err == nil && line.session == "" {
			slices.Reverse(all)
			return all, nil
		}
		if err != nil {
			return nil, wrap(fmt.Sprintf("find the session that %s was forked from", id), err)
		}
	}
}

// isHistory is an SQL condition for turns that belong to the history: turns that ran, and turns whose prompt was added
// to a running turn.
const isHistory = `(state IN ('done', 'failed', 'aborted', 'interrupted')
	OR state = 'cancelled' AND steered_into <> '')`

// ancestry is a session in a chain of forks. A fork contains the turns of its parent up to the turn with the number
// `last`.
type ancestry struct {
	session string
	last    int64
}

func ancestryFields(a *ancestry) []any { return []any{&a.session, &a.last} }
