package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/lang"
	"ductor/orchestrator"
)

// Conversation returns what a chat chose; a chat that chose nothing gives a zero Conversation with its ID.
func (db *DB) Conversation(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Conversation, error) {
	c, err := sqlite.Kept(ctx, db.file, sqlite.Source{Name: string(id.Key()), Tables: []string{"conversations"}}, scanConversation, `SELECT coalesce(session, ''), agent, model, effort, permission, dir, role, busy, bypass_until, notify, think, tools, display, granted_in
		FROM conversations WHERE chat = ? AND topic = ?`, id.Chat, id.Topic)
	c, err = known(c, err, nil)
	c.ID, c.Tools.Only, c.Tools.Denied = id, slices.Clone(c.Tools.Only), slices.Clone(c.Tools.Denied)
	return c, wrap(fmt.Sprintf("load conversation %s", id.Key()), err)
}

// SaveConversation stores all of c and audits the change. ErrNoSession when c names a session that is not there.
func (db *DB) SaveConversation(ctx context.Context, c orchestrator.Conversation, audit ...orchestrator.AuditEntry) error {
	tools, err := encodeTools(c.Tools)
	if err != nil {
		return wrap(fmt.Sprintf("save conversation %s", c.ID.Key()), err)
	}
	err = db.write(ctx, func(t tx) error {
		_, err := t.ExecRow(string(c.ID.Key()), `INSERT INTO conversations (chat, topic, session, agent, model, effort, permission, dir, role, busy, bypass_until, notify, think, tools, display, granted_in)
			VALUES (?, ?, nullif(?, ''), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (chat, topic) DO UPDATE SET session = excluded.session, agent = excluded.agent,
				model = excluded.model, effort = excluded.effort, permission = excluded.permission,
				dir = excluded.dir, role = excluded.role, busy = excluded.busy, bypass_until = excluded.bypass_until,
				notify = excluded.notify, think = excluded.think, tools = excluded.tools, display = excluded.display, granted_in = excluded.granted_in`,
			c.ID.Chat, c.ID.Topic, string(c.Session), string(c.Agent), string(c.Model), string(c.Effort),
			string(c.Permission), c.Dir, c.Role, string(c.Settings.Busy), millis(c.BypassUntil), string(c.Settings.Notify), string(c.Settings.Think), tools, string(c.Settings.Display), string(c.GrantedIn))
		if err != nil {
			return namedSession(err)
		}
		return t.audit(audit...)
	})
	return wrap(fmt.Sprintf("save conversation %s", c.ID.Key()), err)
}

// EndBypasses has every conversation in bypass ask again, audits that and returns them.
func (db *DB) EndBypasses(ctx context.Context, at time.Time) ([]orchestrator.ConversationID, error) {
	over, err := sqlite.Many(ctx, db.file, scan(conversationIDFields), `SELECT chat, topic FROM conversations WHERE permission = ?`, string(cli.Bypass))
	if err != nil || len(over) == 0 {
		return nil, wrap("list bypasses", err)
	}
	err = db.write(ctx, func(t tx) error {
		for _, id := range over {
			_, err := t.Exec(`UPDATE conversations SET permission = ?, bypass_until = 0 WHERE chat = ? AND topic = ?`,
				string(cli.Ask), id.Chat, id.Topic)
			if err != nil {
				return err
			}
			err = t.audit(orchestrator.AuditEntry{At: at, What: orchestrator.AuditMode, Conversation: id, Title: string(cli.Ask), Reason: "ductor was restarted"})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return over, wrap("end bypasses", err)
}

func conversationIDFields(id *orchestrator.ConversationID) []any { return []any{&id.Chat, &id.Topic} }

func scanConversation(row sqlite.Row) (c orchestrator.Conversation, err error) {
	var tools string
	err = row.Scan(&c.Session, &c.Agent, &c.Model, &c.Effort, &c.Permission, &c.Dir, &c.Role, &c.Settings.Busy, moment{&c.BypassUntil}, &c.Settings.Notify, &c.Settings.Think, &tools, &c.Settings.Display, &c.GrantedIn)
	if err == nil {
		c.Tools, err = decodeTools(tools)
	}
	return c, err
}

type toolsRow struct {
	Only   []string `json:"only,omitempty"`
	Denied []string `json:"denied,omitempty"`
}

// encodeTools gives JSON, and nothing for a list that limits nothing.
func encodeTools(list cli.ToolList) (string, error) {
	if list.Empty() {
		return "", nil
	}
	return encode(toolsRow(list))
}

func decodeTools(text string) (cli.ToolList, error) {
	var row toolsRow
	err := decode(text, &row)
	return cli.ToolList(row), err
}

// namedSession turns the foreign key's complaint into the word the domain knows.
func namedSession(err error) error {
	if sqlite.IsForeignKey(err) {
		return orchestrator.ErrNoSession
	}
	return err
}

// WaitingConversations lists the conversations in which a turn waits, runs, or ended and is not shown.
func (db *DB) WaitingConversations(ctx context.Context) ([]orchestrator.ConversationID, error) {
	all, err := sqlite.Many(ctx, db.file, scan(conversationIDFields), `SELECT DISTINCT chat, topic FROM turns WHERE delivered = 0 ORDER BY chat, topic`)
	return all, wrap("list waiting conversations", err)
}

const consultColumns = `id, chat, topic, agent, model, effort, sandbox, dir, home, own, said, used`

func consultFields(c *orchestrator.Consult) []any {
	return []any{&c.ID, &c.Conversation.Chat, &c.Conversation.Topic, &c.Model.Agent, &c.Model.Model, &c.Model.Effort,
		&c.Sandbox, &c.Dir, &c.Home, &c.Own, &c.Said, moment{&c.Used}}
}

// Consult returns ErrNoConsult for an id that is not there.
func (db *DB) Consult(ctx context.Context, id orchestrator.ConsultID) (orchestrator.Consult, error) {
	return db.consult(ctx, `WHERE id = ?`, string(id))
}

// LastConsult is the side session of a conversation that was used last; ErrNoConsult if there is none.
func (db *DB) LastConsult(ctx context.Context, in orchestrator.ConversationID) (orchestrator.Consult, error) {
	return db.consult(ctx, `WHERE chat = ? AND topic = ? ORDER BY used DESC, id DESC LIMIT 1`, in.Chat, in.Topic)
}

func (db *DB) consult(ctx context.Context, where string, args ...any) (orchestrator.Consult, error) {
	c, err := sqlite.One(ctx, db.file, scan(consultFields), `SELECT `+consultColumns+` FROM consults `+where, args...)
	c, err = known(c, err, orchestrator.ErrNoConsult)
	return c, wrap("load a side session", err)
}

// SaveConsult stores a side session in the place of the one with its id.
func (db *DB) SaveConsult(ctx context.Context, c orchestrator.Consult) error {
	return wrap("store a side session", db.share(ctx, func(t tx) error {
		return t.put("consults", "id", consultColumns, consultFields(&c)...)
	}))
}

const languageColumns = `id, chosen, heard`

func languageFields(c *lang.Choice) []any { return []any{&c.ID, &c.Chosen, &c.Heard} }

// Languages lists what SaveLanguage stored.
func (db *DB) Languages(ctx context.Context) ([]lang.Choice, error) {
	all, err := sqlite.Many(ctx, db.file, scan(languageFields), `SELECT `+languageColumns+` FROM languages`)
	return all, wrap("list languages", err)
}

// SaveLanguage stores the language of a user or group in place of the one before. It shares a transaction: the first prompt of a chat
// does not wait for the disk, and the update that brought the language is acknowledged after it is there.
func (db *DB) SaveLanguage(ctx context.Context, c lang.Choice) error {
	return wrap("save a language", db.share(ctx, func(t tx) error {
		return t.put("languages", "id", languageColumns, languageFields(&c)...)
	}))
}
